package llmsandbox

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/llmsandbox/llmsandbox/internal/agentclient"
	"github.com/llmsandbox/llmsandbox/internal/agentlink"
	"github.com/llmsandbox/llmsandbox/internal/agentproto"
	"github.com/llmsandbox/llmsandbox/internal/egress"
	"github.com/llmsandbox/llmsandbox/internal/environ"
	"github.com/llmsandbox/llmsandbox/internal/errclass"
	"github.com/llmsandbox/llmsandbox/internal/gateway"
	"github.com/llmsandbox/llmsandbox/internal/language/all"
	"github.com/llmsandbox/llmsandbox/internal/layers"
	"github.com/llmsandbox/llmsandbox/internal/plainjson"
	"github.com/llmsandbox/llmsandbox/internal/sockets"
)

// A NetworkMode is how much a sandbox may reach.
type NetworkMode string

// The modes.
const (
	NetworkNone  NetworkMode = "none"  // nothing, the default
	NetworkAllow NetworkMode = "allow" // what Network.Allow names
	NetworkFull  NetworkMode = "full"  // all but what is the host's own: see Network
)

// Network says what a sandbox may reach, through a proxy on its loopback that the
// usual environment variables name. Code that does not use the proxy reaches nothing.
// Metadata services, loopback, link-local and private addresses are refused in every
// mode unless a rule names the address itself.
type Network struct {
	Mode NetworkMode // empty means none
	// Allow are rules for NetworkAllow: HOST[:PORT], *.DOMAIN[:PORT], an address or a
	// CIDR with or without a port, IPv6 with a port in brackets. In NetworkFull they
	// may name addresses that are otherwise refused. PackageHosts is a rule, too.
	Allow []string
	// Resolve finds the addresses of a name that the rules let through; nil means this
	// machine's resolver. What it returns is checked like any address.
	Resolve func(ctx context.Context, name string) ([]netip.Addr, error) `json:"-"`
	// Roots verify the certificates of the hosts of secrets; nil means this machine's.
	Roots *x509.CertPool `json:"-"`
	// Hook, when set, is called with every attempt when it has ended or was refused. It is
	// called from other goroutines and must not block.
	Hook func(NetworkAttempt) `json:"-"`

	packages      []layers.RegistryHost // what PackageHosts means on this machine
	noPackages    error                 // why there are none
	imagePackages []layers.RegistryHost // what it means in the sandbox's image
}

// PackageHosts as a rule of Network.Allow allows the hosts that this machine's package tools get packages from, as they are
// configured: the languages' and the distribution's. They are reached wherever their names lead, and through this
// machine's own proxy where it has one. When a sandbox of an image is opened with it, it also allows the hosts, by name and where these are
// public, that the image's apt or apk is configured to use.
const PackageHosts = "os-packages"

// findPackages finds what PackageHosts means on this machine, where it is one of the rules.
func (n *Network) findPackages(ctx context.Context) (err error) {
	if !slices.Contains(n.Allow, PackageHosts) {
		return nil
	}
	if n.packages, err = layers.PackageHosts(ctx, all.Coded()); errors.Is(err, ErrUnsupported) {
		n.noPackages, err = err, nil
	}
	if err != nil {
		return fmt.Errorf("network %s: %w", PackageHosts, err)
	}
	return nil
}

// foundPackages fails where PackageHosts is a rule and means nothing.
func (n *Network) foundPackages() error {
	if n.noPackages != nil && len(n.imagePackages) == 0 {
		return fmt.Errorf("network %s: %w", PackageHosts, n.noPackages)
	}
	return nil
}

// imageSources are the files in which an image names the hosts that its packages come from, of apt and apk. A directory stands for
// those in it.
var imageSources = []string{"/etc/apt/sources.list", "/etc/apt/sources.list.d/", "/etc/apk/repositories"}

// allowImagePackages adds to what the sandbox may reach what PackageHosts means in its image. No code has run that could have changed it.
func (s *Sandbox) allowImagePackages(ctx context.Context, n Network) error {
	if slices.Contains(n.Allow, PackageHosts) && !s.machine.Guest().Host {
		var found []layers.RegistryHost
		for _, name := range imageSources {
			found = append(found, s.sourcesOf(ctx, name)...)
		}
		s.net.imagePackages = found[:min(len(found), maxImageHosts)]
	}
	n.imagePackages = s.net.imagePackages
	if err := n.foundPackages(); err != nil || len(n.imagePackages) == 0 {
		return err
	}
	policy, err := n.policy()
	if err != nil {
		return err
	}
	s.net.Change(s.net.Served(), policy, n.Allow)
	return nil
}

// sourcesOf are the hosts in a file or directory of the image. What cannot be read names none: an image has one kind or another.
func (s *Sandbox) sourcesOf(ctx context.Context, name string) (hosts []layers.RegistryHost) {
	if dir, ok := strings.CutSuffix(name, "/"); ok {
		list, _ := s.ListDir(ctx, dir)
		for _, f := range list[:min(len(list), maxSourceFiles)] {
			if strings.HasSuffix(f.Name, ".list") || strings.HasSuffix(f.Name, ".sources") {
				hosts = append(hosts, s.sourcesOf(ctx, path.Join(dir, f.Name))...)
			}
		}
		return hosts
	}
	text, _ := file(ctx, s, "read", name, func(c *agentclient.Client) ([]byte, error) { return c.ReadAll(ctx, name, maxSourceFile) })
	return layers.SourceHosts(text)
}

// Bounds of what is read of an image's sources.
const (
	maxSourceFiles = 64
	maxSourceFile  = 256 << 10
	maxImageHosts  = 64
)

// hook is Hook for attempts as the gateway has them.
func (n Network) hook() func(egress.Attempt) {
	if n.Hook == nil {
		return nil
	}
	return func(a egress.Attempt) { n.Hook(NetworkAttempt(a)) }
}

// policy is the network's rules; nil for none.
func (n Network) policy() (*egress.Policy, error) {
	mode := n.Mode
	switch mode {
	case "", NetworkNone:
		if len(n.Allow) > 0 {
			return nil, fmt.Errorf("network: %w: there are rules of what to allow and the mode is none: use the mode %s", ErrInvalid, NetworkAllow)
		}
		return nil, nil
	}
	rules := slices.Clone(n.Allow)
	for _, h := range slices.Concat(n.packages, n.imagePackages) {
		rules = append(rules, h.String())
	}
	policy, err := egress.ParsePolicy(string(mode), rules)
	for _, h := range n.packages {
		if err == nil {
			err = policy.AllowRegistry(h.Name, h.Port)
		}
	}
	if err != nil {
		return nil, asInvalid(err)
	}
	return policy, nil
}

// A Secret is a value that never enters the sandbox: its environment variable holds a
// placeholder there, for which requests to its hosts get the value on their way out.
type Secret struct {
	Name string // of the environment variable
	// Value is put where a request's headers, basic authentication and query hold the
	// placeholder: at least 8 bytes, no control characters.
	Value string
	// Hosts are HOST[:PORT] or *.DOMAIN[:PORT] that may get it, at least one. The network
	// must allow them, too.
	Hosts []string
	// Body has it put into request bodies as well. A host that keeps what it is sent may
	// show it to others: it is for hosts that want the secret there.
	Body bool
}

// checkSecrets fails where secrets could not be used.
func checkSecrets(o Options) error {
	if len(o.Secrets) == 0 {
		return nil
	}
	policy, err := o.Network.policy()
	if err != nil {
		return err
	}
	if policy == nil {
		return fmt.Errorf("secret %q: %w: it is used in requests to its hosts, and the sandbox has no network: allow them in Network", o.Secrets[0].Name, ErrInvalid)
	}
	for _, s := range o.Secrets {
		if _, both := o.Env[s.Name]; both {
			return fmt.Errorf("secret %q: %w: Env has a variable of that name, too", s.Name, ErrInvalid)
		}
		for _, host := range s.Hosts {
			if reached, err := policy.Reaches(host); err != nil {
				return fmt.Errorf("secret %q: %w", s.Name, asInvalid(err))
			} else if !reached {
				return fmt.Errorf("secret %q: %w: the sandbox may not reach its host %s: allow it in Network, too", s.Name, ErrInvalid, host)
			}
		}
	}
	return nil
}

func asInvalid(err error) error {
	if errors.Is(err, ErrInvalid) {
		return err
	}
	return errclass.Of(ErrInvalid, err)
}

// A NetworkAttempt is one try of the sandbox to reach something.
type NetworkAttempt struct {
	// Time is when it began.
	Time time.Time `json:"time"`
	// Protocol is "http" for a request in plain HTTP, "connect" or "socks5" for a tunnel;
	// empty when the attempt ended before it said so.
	Protocol string `json:"protocol,omitempty"`
	// Name is the host that was asked for, Address the one that was dialled, if any.
	Name    string     `json:"name"`
	Address netip.Addr `json:"address,omitzero"`
	Port    uint16     `json:"port"`
	// Allowed says that the rules let it through.
	Allowed bool `json:"allowed"`
	// Refused says in one word why the rules did not, such as "not-allowed" or "metadata": what
	// the header X-Llmsandbox-Refused says to the program.
	Refused string `json:"refused,omitempty"`
	// Reason says why it was refused, or what went wrong with what was allowed.
	Reason string `json:"reason,omitempty"`
	// Sent and Received are bytes from and to the sandbox: of a request its bodies, of
	// a tunnel all that went through it.
	Sent     int64 `json:"sent_bytes"`
	Received int64 `json:"received_bytes"`
	// Duration is from the request to the connection's end; 0 while it is open.
	Duration time.Duration `json:"-"`
}

// attemptFields are a NetworkAttempt without its methods.
type attemptFields NetworkAttempt

type attemptJSON struct {
	attemptFields
	DurationMS float64 `json:"duration_ms"`
}

// MarshalJSON writes the attempt with snake_case names, sizes in bytes and the duration
// in milliseconds.
func (a NetworkAttempt) MarshalJSON() ([]byte, error) {
	return plainjson.Marshal(attemptJSON{attemptFields(a), milliseconds(a.Duration)})
}

// UnmarshalJSON reads what MarshalJSON writes, in place of all that the attempt had. The duration is whole microseconds there.
func (a *NetworkAttempt) UnmarshalJSON(b []byte) error {
	var in *attemptJSON
	if err := json.Unmarshal(b, &in); err != nil || in == nil {
		return err
	}
	duration, err := fromMilliseconds(in.DurationMS)
	if err != nil {
		return fmt.Errorf("duration_ms: %w", err)
	}
	*a = NetworkAttempt(in.attemptFields)
	a.Duration = duration
	return nil
}

// attempts ends a record, which may be nil.
func attempts(r networkRecord, settle time.Duration) ([]NetworkAttempt, int) {
	if r == nil {
		return nil, 0
	}
	ended, dropped := r.End(settle)
	var list []NetworkAttempt
	for _, a := range ended {
		list = append(list, NetworkAttempt(a))
	}
	return list, dropped
}

// Traffic is how many bytes a sandbox has sent over its network and received, those included that the proxy itself was sent or has answered.
type Traffic struct{ Sent, Received int64 }

// Traffic returns what has gone over the sandbox's network since it was opened, also in connections that are open. A handle that [Attach] returned knows it
// where a [Supervisor] owns the sandbox; otherwise it knows what it has served itself.
func (s *Sandbox) Traffic(ctx context.Context) (t Traffic, err error) {
	if err := s.link.Alive(); err != nil {
		return t, err
	}
	if s.supervisor == nil {
		t.Sent, t.Received = s.net.Log.Total.Bytes()
		return t, nil
	}
	n, err := s.supervisor.Network(ctx)
	if err != nil {
		return t, fmt.Errorf("sandbox %s: ask for its traffic: %w", s.ID(), asTold(err))
	}
	return Traffic{n.Sent, n.Received}, nil
}

// Dial connects to a server inside the sandbox, on a TCP port of its loopback. It fails
// with fs.ErrNotExist when nothing listens there. The sandbox needs no network for it,
// and the server sees a connection from its own loopback. What was written before Close
// still arrives. The connection ends with the sandbox's handle.
func (s *Sandbox) Dial(ctx context.Context, port uint16) (net.Conn, error) {
	if err := s.link.Alive(); err != nil {
		return nil, err
	}
	client, err := s.link.Client(ctx)
	if err != nil {
		return nil, err
	}
	stream, err := client.Dial(ctx, port)
	if err != nil {
		return nil, fmt.Errorf("connect to port %d in sandbox %s: %w", port, s.ID(), s.link.Explain(ctx, err))
	}
	return stream.Conn(net.JoinHostPort(s.ID(), strconv.Itoa(int(port)))), nil
}

// Ports returns the addresses that programs in the sandbox listen on by TCP, in the order of their ports, at most 1024. [Sandbox.Dial] reaches those of
// any address and of the loopback. That of the sandbox's own proxy is not among them. It fails with ErrUnsupported where programs have no
// loopback of their own, as with the isolation process, and for a sandbox that an older version has opened.
func (s *Sandbox) Ports(ctx context.Context) ([]netip.AddrPort, error) {
	if err := s.link.Alive(); err != nil {
		return nil, err
	}
	if s.Capabilities().Isolation == "process" {
		return nil, fmt.Errorf("list the ports of sandbox %s: %w: with the isolation process it has no loopback of its own, and code cannot listen", s.ID(), ErrUnsupported)
	}
	client, err := s.link.Client(ctx)
	if err != nil {
		return nil, err
	}
	table, err := client.Sockets(ctx)
	if err != nil {
		if agentlink.Code(err) == agentproto.CodeUnsupported {
			err = errclass.Errorf(ErrUnsupported, "its agent is older than this program: open another sandbox")
		}
		return nil, fmt.Errorf("list the ports of sandbox %s: %w", s.ID(), s.link.Explain(ctx, err))
	}
	own := gateway.ProxyAddress(s.machine.Guest())
	return slices.DeleteFunc(sockets.Listening(table), func(a netip.AddrPort) bool { return a == own }), nil
}

// A sandboxNetwork is what a handle has of a sandbox's network, and needs to change it.
type sandboxNetwork struct {
	*gateway.Network
	// supervised is what the sandbox's supervisor serves; nil where there is none.
	supervised atomic.Pointer[supervisedNetwork]
	owner      bool // the handle is the one that serves it
	lenient    bool // the caller takes what cannot be enforced
	secrets    []Secret

	imagePackages []layers.RegistryHost // what PackageHosts means in the image, if the sandbox was opened with it

	mu sync.Mutex // one change at a time
}

// planNetwork makes the proxy of a network; nil for none.
func planNetwork(network Network, secrets []Secret, log *gateway.Log) (*gateway.Plan, error) {
	policy, err := network.policy()
	if err != nil || policy == nil {
		return nil, err
	}
	log.SetHook(network.hook())
	c := egress.Config{Policy: policy, Roots: network.Roots, Resolve: network.Resolve}
	for _, s := range secrets {
		c.Secrets = append(c.Secrets, egress.Secret{Name: s.Name, Value: s.Value, Hosts: s.Hosts, Body: s.Body})
	}
	plan, err := gateway.NewPlan(c, log, 0)
	if err != nil {
		return nil, asInvalid(err)
	}
	return plan, nil
}

// startNetwork has a plan's proxy serve the sandbox; no plan is no network. When it fails the
// plan is discarded.
func (s *Sandbox) startNetwork(ctx context.Context, plan *gateway.Plan, allow []string) error {
	if plan == nil {
		return nil
	}
	if err := s.netIsolated(NetworkMode(plan.Mode)); err != nil {
		plan.Discard()
		return err
	}
	return s.net.Serve(ctx, plan, allow)
}

// netIsolated fails where the sandbox has a network of its own, which no rule holds.
func (s *Sandbox) netIsolated(mode NetworkMode) error {
	c, known := s.Capabilities().Get("network")
	if mode != NetworkAllow || s.net.lenient || known && c.Enforced {
		return nil
	}
	return fmt.Errorf("network %s: %w: programs could go around the rules (%s): leave the backend's own network out, or ask for best effort", mode, ErrNotEnforced, c.Why)
}

// SetNetwork changes what the sandbox may reach: at once for what its programs ask for
// from now on, and connections that are no longer allowed are cut. Where there was no
// network before, only programs that start from now on know of it; where there was one,
// its Resolve and Roots stay.
//
// A handle of [Attach] has the sandbox's supervisor do it (see [Options]), without Resolve, Roots and
// Hook. Where there is none it serves the network itself from now on, without secrets, and the handle
// that did it before gets ErrDetached.
func (s *Sandbox) SetNetwork(ctx context.Context, network Network) error {
	s.net.mu.Lock()
	defer s.net.mu.Unlock()
	if err := s.link.Alive(); err != nil {
		return err
	}
	if s.net.owner || s.supervisor == nil {
		if err := network.findPackages(ctx); err != nil {
			return err
		}
		if slices.Contains(network.Allow, PackageHosts) {
			network.imagePackages = s.net.imagePackages
		}
		if err := network.foundPackages(); err != nil {
			return err
		}
	}
	policy, err := network.policy()
	if err != nil {
		return err
	}
	switch {
	case s.net.owner:
	case s.supervisor != nil:
		return s.setSupervisedNetwork(ctx, network)
	case policy == nil:
		return fmt.Errorf("change the network of sandbox %s: %w: what serves it is the process that opened the sandbox", s.ID(), ErrInvalid)
	}
	on := s.net.Served()
	switch {
	case on != nil && on.Taken():
		return s.networkTaken()
	case policy == nil && on == nil:
		return nil
	case policy == nil:
		s.net.Stop()
		return nil
	case on != nil:
		if err := s.netIsolated(network.Mode); err != nil {
			return err
		}
		s.net.Log.SetHook(network.hook())
		s.net.Change(on, policy, network.Allow)
		return nil
	}
	plan, err := planNetwork(network, s.net.secrets, s.net.Log)
	if err != nil {
		return err
	}
	if err := s.startNetwork(ctx, plan, network.Allow); err != nil {
		return err
	}
	s.net.owner = true
	return nil
}

// Network returns what the sandbox may reach, as Mode and Allow say. A handle of [Attach] knows it
// from the sandbox's supervisor; where there is none it fails with ErrUnsupported.
func (s *Sandbox) Network(ctx context.Context) (Network, error) {
	if err := s.link.Alive(); err != nil {
		return Network{}, err
	}
	if on := s.net.Served(); on != nil {
		if on.Taken() {
			return Network{}, s.networkTaken()
		}
		return Network{Mode: NetworkMode(on.Mode), Allow: slices.Clone(on.Allow)}, nil
	}
	switch {
	case s.net.owner:
		return Network{Mode: NetworkNone}, nil
	case s.supervisor == nil:
		return Network{}, fmt.Errorf("the network of sandbox %s: %w: only the process that opened the sandbox knows it", s.ID(), ErrUnsupported)
	}
	if err := s.askNetwork(ctx); err != nil {
		return Network{}, err
	}
	return s.net.supervised.Load().Network, nil
}

func (s *Sandbox) networkTaken() error {
	return fmt.Errorf("the network of sandbox %s: %w: another handle serves it", s.ID(), ErrDetached)
}

// namesSecret reports whether a variable has the placeholder of a secret.
func (s *Sandbox) namesSecret(kv string) bool {
	name, _, _ := strings.Cut(kv, "=")
	return slices.ContainsFunc(s.net.secrets, func(secret Secret) bool { return secret.Name == name })
}

// environ is the environment of the sandbox's programs.
func (s *Sandbox) environ() []string {
	if on := s.net.Served(); on != nil {
		return environ.AddMissing(s.env, on.Env)
	}
	if n := s.net.supervised.Load(); n != nil {
		return n.environ
	}
	return s.env
}
