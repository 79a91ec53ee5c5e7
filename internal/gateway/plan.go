package gateway

import (
	"cmp"
	"net"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/egress"
	"github.com/llmsandbox/llmsandbox/internal/proxyenv"
	"github.com/llmsandbox/llmsandbox/internal/trust"
)

const (
	// usualPort is where programs find the proxy on the sandbox's loopback: no service's port,
	// and below those that the kernel hands out by itself.
	usualPort = 28471
	// usualDir holds the files that make programs use the proxy, in a sandbox whose
	// directory for temporary files is /tmp.
	usualDir = "/tmp/.llmsandbox"
	// maxConnections bounds what is carried at once. The agent holds to the same, unless
	// it was taken over.
	maxConnections = 256
)

// DirIn is the directory of the gateway's files in a sandbox.
func DirIn(guest backend.Guest) string { return path.Join(guest.TempDir, path.Base(usualDir)) }

// EnvIn is an environment that a plan made, for a sandbox: a plan is made before it is
// known where the sandbox has its directory for temporary files, and which port.
func EnvIn(guest backend.Guest, env []string) []string {
	dir, port := DirIn(guest), cmp.Or(guest.ProxyPort, usualPort)
	if dir == usualDir && port == usualPort {
		return env
	}
	there := strings.NewReplacer(usualDir, dir, addressOf(usualPort), addressOf(port))
	out := slices.Clone(env)
	for i, kv := range out {
		out[i] = there.Replace(kv)
	}
	return out
}

// ProxyAddress is where the proxy of a guest's network is, if it has one.
func ProxyAddress(guest backend.Guest) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), cmp.Or(guest.ProxyPort, usualPort))
}

// addressOf is where programs find the proxy.
func addressOf(port uint16) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))) }

// A Plan is a proxy that serves no sandbox yet, and what programs inside need in order to use it.
type Plan struct {
	Mode string
	// Env are variables that a sandbox's programs get, see [EnvIn].
	Env   []string
	files []proxyenv.File
	proxy *egress.Proxy
	log   *Log
	port  uint16
	taken bool // by a gateway
}

// NewPlan makes the proxy. Nothing inside is needed for it, so that what is not possible
// fails before there is a sandbox. The plan is ended by [Plan.Discard] or taken over by [Open].
//
// port is where programs find the proxy on their loopback; 0 is the usual one, which one sandbox of a network namespace can have.
func NewPlan(c egress.Config, log *Log, port uint16) (*Plan, error) {
	c.Log, c.Total, c.MaxConnections = log.ended, &log.Total, maxConnections
	proxy, err := egress.New(c)
	if err != nil {
		return nil, err
	}
	p := &Plan{Mode: c.Policy.Mode(), proxy: proxy, log: log, port: cmp.Or(port, usualPort)}
	p.Env, p.files = proxyenv.Setup(addressOf(p.port), usualDir)
	// Programs get placeholders of secrets, and trust the authority by which secrets are put into TLS.
	if proxy.CA() != nil {
		for _, s := range c.Secrets {
			p.Env = append(p.Env, s.Name+"="+proxy.Placeholder(s.Name))
		}
		p.Env = append(p.Env, trust.Env(usualDir)...)
	}
	return p, nil
}

// Discard ends a plan that no gateway has taken over; a nil plan is none.
func (p *Plan) Discard() {
	if p != nil && !p.taken {
		p.proxy.Close()
	}
}
