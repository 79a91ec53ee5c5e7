// Package service is what servers share: sandboxes that belong to projects, within what the operator allows, and places
// for programs that run at once.
//
// Which project a sandbox belongs to is written on the sandbox, not in a database: so it is known to every server of the
// backend, also to one that starts after another was killed.
package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/httpapi/database"
	"github.com/llmsandbox/llmsandbox/httpapi/metering"
	"github.com/llmsandbox/llmsandbox/internal/flight"
	"github.com/llmsandbox/llmsandbox/internal/language/all"
	"github.com/llmsandbox/llmsandbox/internal/replicas"
	"github.com/llmsandbox/llmsandbox/internal/service/images"
	"github.com/llmsandbox/llmsandbox/internal/sessions"
	"github.com/llmsandbox/llmsandbox/pool"
)

// Errors of a service, beside those of the library.
var (
	// ErrNotAllowed: the operator does not allow this.
	ErrNotAllowed = errors.New("not allowed by this server")
	// ErrQuota: the project's sandboxes are as many, or may take as much, as it may have.
	ErrQuota = errors.New("quota reached")
	// ErrManyKeys: the project has as many keys as it may.
	ErrManyKeys = errors.New("the project has too many API keys")
	// ErrBusy: as many programs run as may, and others wait.
	ErrBusy = sessions.ErrBusy
	// ErrUnavailable: what the server keeps does not answer, or takes no more.
	ErrUnavailable = errors.New("the server's database cannot be used now: try again later")
	// ErrNotKept: a program was started and killed at once, since it could not be kept that it runs.
	ErrNotKept = errors.New("the program was killed: the server's database could not keep that it runs")
	// ErrClosed: the service is being closed.
	ErrClosed = errors.New("the server is stopping")
)

// Config says what a service's sandboxes may do and have. The zero value is a service on the default backend with the
// default limits, no network, and sandboxes that end with it.
type Config struct {
	// Sandbox is what each sandbox is opened with where a request says nothing else. Its Limits are also the most that a request may ask
	// for; Limits.Timeout is that alone, and a program whose request says nothing has the default. Its Network is the most, too: a sandbox
	// has none unless the request asks for it. Language, Libraries, ID, Lifetime, Supervisor and Progress must be zero.
	Sandbox llmsandbox.Options
	// Images are those that requests may name, beside Sandbox.Image; a * at the end of one stands for any ending.
	Images []string
	// Supervisor owns the sandboxes that are created, so that they outlive the service; nil: they end with it.
	Supervisor *llmsandbox.Supervisor
	// MaxLifetime bounds how long a created sandbox may live; 0 means a day. DefaultLifetime is how long it lives where the
	// request does not say; 0 means an hour.
	MaxLifetime, DefaultLifetime time.Duration
	// MaxSandboxes is how many created sandboxes a project may have at a time; 0 means 64.
	MaxSandboxes int
	// MaxMemory and MaxDisk bound the limits of a project's created sandboxes together, in bytes; 0: only MaxSandboxes does.
	MaxMemory, MaxDisk int64
	// MaxVolumes is how many volumes a project may have; 0: projects have none. What is in them is bounded by nothing.
	MaxVolumes int
	// MaxImages is how many images a project may have of its sandboxes; 0: projects have none. They are kept in ImageDir. Sandbox.Backend must be the local one:
	// no other removes what was unpacked of them. Each has at most the disk limit of its sandbox, beside what that was opened from.
	MaxImages int
	ImageDir  string
	// Usage keeps what projects use; nil: that is neither counted nor bounded.
	Usage metering.Store
	// MaxDayCPU and MaxDaySent are how much CPU time a project may use and how many bytes its sandboxes may send over their networks in a day, in UTC: a
	// project that has used more begins nothing, and what runs goes on. 0 bounds nothing. They need Usage.
	MaxDayCPU  time.Duration
	MaxDaySent int64
	// MaxRuns is how many programs may run at a time; 0 means 16. Others wait for at most Patience, 0 means ten seconds.
	MaxRuns  int
	Patience time.Duration
	// Memory, where it is set, tells how many bytes of memory sandboxes can still take, and how many there are in all. Where less than a twentieth of it is
	// left, or 64 MiB, nothing more is begun. Where it fails, that does not bound anything.
	Memory func() (available, total int64, err error)
	// Warm is how many sandboxes are kept ready for each of WarmLanguages; none means Python. 0 means two, negative none.
	Warm          int
	WarmLanguages []string
	// Zygote opens Python's sandboxes for one program each from one interpreter: see pool.Config.Zygote.
	Zygote bool
	// Hooks are called with what happens to the sandboxes that are kept ready.
	Hooks []pool.Hooks
	// Records keep what becomes of programs that go on without their request; nil: they end with the service.
	Records database.Records
	// Replica, where it is set, is this server among others of the same backend and Records, each of which holds some of the sandboxes. There must be a Supervisor.
	Replica *replicas.Member
	// Ended, where it is set, is called with what became of each of these programs, and what Start.By was.
	Ended func(by string, res *llmsandbox.Result)
	// Log gets what is no answer to a request; nil logs nothing.
	Log *slog.Logger

	timeout time.Duration    // of a program whose request does not say
	now     func() time.Time // of what is used, but in tests time.Now
}

func (c Config) resolve() (Config, error) {
	o := c.Sandbox
	if o.Language != "" || len(o.Libraries) > 0 || o.ID != "" || o.Lifetime != 0 || o.Supervisor != nil || o.Progress != nil {
		return c, fmt.Errorf("service: Config.Sandbox: %w: Language, Libraries, ID, Lifetime, Supervisor and Progress are chosen for each sandbox", llmsandbox.ErrInvalid)
	}
	if c.MaxLifetime < 0 || c.DefaultLifetime < 0 || c.MaxSandboxes < 0 || c.MaxMemory < 0 || c.MaxDisk < 0 || c.MaxVolumes < 0 || c.MaxImages < 0 || c.MaxDayCPU < 0 || c.MaxDaySent < 0 || c.MaxRuns < 0 || c.Patience < 0 {
		return c, fmt.Errorf("service: Config: %w: a bound is negative; leave it zero for the default", llmsandbox.ErrInvalid)
	}
	if c.Usage == nil && (c.MaxDayCPU > 0 || c.MaxDaySent > 0) {
		return c, fmt.Errorf("service: Config: %w: MaxDayCPU and MaxDaySent bound what Usage keeps, and there is none", llmsandbox.ErrInvalid)
	}
	for _, v := range o.Volumes {
		if !v.ReadOnly {
			return c, fmt.Errorf("service: Config.Sandbox.Volumes: %w: all projects would share what code writes to volume %s: make it read-only", llmsandbox.ErrInvalid, v.Name)
		}
	}
	var err error
	if c.Sandbox, err = o.WithTemplate(); err != nil {
		return c, fmt.Errorf("service: Config.Sandbox: %w", err)
	}
	limits, def := &c.Sandbox.Limits, llmsandbox.DefaultLimits()
	limits.Memory, limits.CPUs, limits.PIDs = cmp.Or(limits.Memory, def.Memory), cmp.Or(limits.CPUs, def.CPUs), cmp.Or(limits.PIDs, def.PIDs)
	limits.Disk, limits.Timeout, limits.Output = cmp.Or(limits.Disk, def.Disk), cmp.Or(limits.Timeout, 5*time.Minute), cmp.Or(limits.Output, def.Output)
	c.timeout = def.Timeout
	if limits.Timeout > 0 {
		c.timeout = min(c.timeout, limits.Timeout)
	}
	c.MaxLifetime = cmp.Or(c.MaxLifetime, 24*time.Hour)
	c.DefaultLifetime = min(cmp.Or(c.DefaultLifetime, time.Hour), c.MaxLifetime)
	c.MaxSandboxes, c.MaxRuns, c.Patience = cmp.Or(c.MaxSandboxes, 64), cmp.Or(c.MaxRuns, 16), cmp.Or(c.Patience, 10*time.Second)
	c.Warm = cmp.Or(c.Warm, 2)
	if len(c.WarmLanguages) == 0 {
		c.WarmLanguages = []string{llmsandbox.DefaultLanguage}
	}
	if c.Replica != nil && c.Supervisor == nil {
		return c, fmt.Errorf("service: Config.Replica: %w: sandboxes need a Supervisor, or they end with their server", llmsandbox.ErrInvalid)
	}
	for i, name := range c.WarmLanguages {
		l, err := all.Get(name)
		if err != nil {
			return c, fmt.Errorf("service: Config.WarmLanguages: %w", err)
		}
		c.WarmLanguages[i] = l.Name
	}
	if c.now == nil {
		c.now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

// A Service holds the sandboxes of a server. It is safe for concurrent use.
type Service struct {
	cfg     Config
	queue   *sessions.Queue
	warm    *pool.Pool
	records database.Records
	usage   *usage
	images  *images.Store      // nil: projects have none
	stop    context.CancelFunc // ends what is done without a request

	memoryUnknown sync.Once

	taking flight.Group[string, *handle] // by the sandbox's id

	mu      sync.Mutex
	handles map[string]*handle        // by the sandbox's id
	making  map[string][]backend.Info // of each project, sandboxes that are being created: their ids and limits, the earliest first
	closing map[chan struct{}]bool    // of sandboxes for one program, those that are being closed, until their channel is
	closed  bool
	// watching are those who watch sandboxes; where there are some, stopListing ends the listing for them, and changes has it list at once.
	watching    map[chan listing]struct{}
	stopListing context.CancelFunc
	changes     chan struct{}
	// makingVolume is held to make a volume.
	makingVolume sync.Mutex
	working      sync.WaitGroup // what ends by itself once the service is closed
}

// New makes a service, which begins to open the sandboxes that are kept ready. It fails with llmsandbox.ErrInvalid for a
// configuration that makes no sense.
func New(config *Config) (*Service, error) {
	cfg := *cmp.Or(config, &Config{})
	cfg.WarmLanguages = slices.Clone(cfg.WarmLanguages)
	cfg, err := cfg.resolve()
	if err != nil {
		return nil, err
	}
	s := &Service{cfg: cfg, queue: sessions.NewQueue(cfg.MaxRuns, 4, cfg.Patience), handles: map[string]*handle{}, making: map[string][]backend.Info{}, closing: map[chan struct{}]bool{}, records: cfg.Records,
		watching: map[chan listing]struct{}{}, changes: make(chan struct{}, 1)}
	if s.records == nil {
		s.records = &memory{}
	}
	if s.images, err = cfg.images(); err != nil {
		return nil, err
	}
	ready := cfg.Sandbox
	ready.Network, ready.Secrets, ready.Limits.Timeout = llmsandbox.Network{}, nil, cfg.timeout
	p := pool.Config{Options: ready, Max: cfg.MaxRuns, AcquireTimeout: creationTimeout, Prepare: true, NoPrewarm: cfg.Warm < 0, Zygote: cfg.Zygote, Hooks: cfg.Hooks}
	if cfg.Warm > 0 {
		for _, name := range cfg.WarmLanguages {
			p.Keys = append(p.Keys, pool.Key{Language: name})
		}
		p.Min = cfg.Warm
		p.Max += p.Min * len(p.Keys)
	}
	if s.warm, err = pool.New(&p); err != nil {
		return nil, err
	}
	s.usage = newUsage(&s.cfg)
	var ctx context.Context
	ctx, s.stop = context.WithCancel(context.Background())
	switch {
	case cfg.Replica != nil:
		s.working.Go(func() { s.replicate(ctx) })
	case cfg.Records != nil && cfg.Supervisor != nil:
		s.working.Go(func() { s.takeUpAll(ctx) })
	}
	return s, nil
}

// creationTimeout bounds the making of a sandbox, for which an image may have to be pulled first.
const creationTimeout = 10 * time.Minute

// Check opens a sandbox and closes it again: its error is why no sandbox can be had.
func (s *Service) Check(ctx context.Context) error {
	o := s.cfg.Sandbox
	o.Network, o.Secrets = llmsandbox.Network{}, nil
	sb, err := llmsandbox.Open(ctx, &o)
	if err != nil {
		return err
	}
	if s.cfg.MaxDayCPU > 0 {
		err = s.countsCPU(ctx, sb)
	}
	if err = errors.Join(err, sb.Close()); err != nil || !s.cfg.Zygote {
		return err
	}
	lease, err := s.warm.Acquire(ctx, nil) // of Python, the default language
	if err == nil {
		lease.Release()
	}
	return err
}

// countsCPU fails with llmsandbox.ErrNotEnforced where nothing counts a sandbox's CPU time.
func (s *Service) countsCPU(ctx context.Context, sb *llmsandbox.Sandbox) error {
	u, err := sb.Usage(ctx)
	if err != nil || u.CPUKnown {
		return err
	}
	err = fmt.Errorf("the CPU time of a project: %w: nothing counts it for sandboxes here", llmsandbox.ErrNotEnforced)
	if !s.cfg.Sandbox.BestEffort {
		return err
	}
	s.cfg.Log.Warn("projects can use any CPU time", "error", err)
	return nil
}

// Sandbox is what sandboxes are opened with, which is also the most that they may have.
func (s *Service) Sandbox() llmsandbox.Options { return s.cfg.Sandbox }

// Warm tells of the sandboxes that are kept ready: how many of each of which languages.
func (s *Service) Warm() (stats pool.Stats, languages []string, kept int) {
	stats = s.warm.Stats()
	if s.cfg.Warm < 0 {
		return stats, []string{}, 0
	}
	return stats, s.cfg.WarmLanguages, s.cfg.Warm
}

// Close lets go of all sandboxes and waits until nothing of the service works any more. Those that have a supervisor live on, with their kernels and programs.
func (s *Service) Close(ctx context.Context) error {
	s.stop()
	s.mu.Lock()
	s.closed = true
	all := s.handles
	s.handles = map[string]*handle{}
	s.endWatches()
	s.mu.Unlock()
	var errs []error
	for _, h := range all {
		errs = append(errs, s.letGoOf(h))
	}
	errs = append(errs, s.warm.Close(ctx))
	s.working.Wait()
	s.usage.close()           // before another server takes what was counted
	if s.cfg.Replica != nil { // others need not wait until it is silent
		errs = append(errs, s.cfg.Replica.Leave(ctx))
	}
	return errors.Join(errs...)
}

// bound gives options the operator's values where they have none. It fails with ErrNotAllowed for what is more than these.
func (c *Config) bound(o *llmsandbox.Options) error {
	most := c.Sandbox.Limits
	o.Limits.Timeout = cmp.Or(o.Limits.Timeout, c.timeout)
	err := cmp.Or(
		atMost("limits.memory_bytes", &o.Limits.Memory, most.Memory, 1),
		atMost("limits.cpus", &o.Limits.CPUs, most.CPUs, 1),
		atMost("limits.pids", &o.Limits.PIDs, most.PIDs, 1),
		atMost("limits.disk_bytes", &o.Limits.Disk, most.Disk, 1),
		atMost("limits.timeout_seconds", &o.Limits.Timeout, most.Timeout, time.Second),
		atMost("limits.output_bytes", &o.Limits.Output, most.Output, 1),
		c.boundNetwork(&o.Network),
		c.boundImage(&o.Image),
		c.boundArtifacts(&o.Artifacts),
		c.boundRights(o),
	)
	if err != nil {
		return err
	}
	o.Lifetime = cmp.Or(o.Lifetime, c.DefaultLifetime)
	return atMost("lifetime_seconds", &o.Lifetime, c.MaxLifetime, time.Second)
}

// atMost gives v the value most where it has none; unit is what one of them is in the request.
func atMost[T int64 | float64 | time.Duration](name string, v *T, most, unit T) error {
	switch {
	case *v == 0:
		*v = most
	case most < 0: // unlimited
	case *v < 0 || *v > most:
		return fmt.Errorf("%s: %w: at most %v", name, ErrNotAllowed, strconv.FormatFloat(float64(most)/float64(unit), 'f', -1, 64))
	}
	return nil
}

// leastMemory is what has to be left of the memory, beside a twentieth of it, before more is begun.
const leastMemory = 64 << 20

// Admit fails where a project may begin nothing: with a SpentError where it has used what it may in a day, and with ErrBusy where there is too little memory left.
func (s *Service) Admit(ctx context.Context, project string) error {
	if err := s.spent(ctx, project); err != nil {
		return err
	}
	return s.hasMemory()
}

func (s *Service) hasMemory() error {
	if s.cfg.Memory == nil {
		return nil
	}
	available, total, err := s.cfg.Memory()
	if err != nil {
		s.memoryUnknown.Do(func() {
			s.cfg.Log.Warn("programs are begun however little memory is left, since that is not known", "error", err)
		})
		return nil
	}
	if available < max(total/20, leastMemory) {
		return fmt.Errorf("%w: too little memory is left for more: try again later", ErrBusy)
	}
	return nil
}

// Timeout is what a program that asks for so long may have; 0 asks for nothing, and gets 0.
func (s *Service) Timeout(asked time.Duration) (time.Duration, error) {
	if asked == 0 {
		return 0, nil
	}
	return asked, atMost("timeout_seconds", &asked, s.cfg.Sandbox.Limits.Timeout, time.Second)
}

func (c *Config) boundNetwork(n *llmsandbox.Network) error {
	most := c.Sandbox.Network
	n.Resolve, n.Roots, n.Hook = most.Resolve, most.Roots, most.Hook
	switch n.Mode {
	case "", llmsandbox.NetworkNone:
		return nil
	case llmsandbox.NetworkAllow, llmsandbox.NetworkFull:
	default:
		return nil // Open says which modes there are
	}
	switch {
	case most.Mode == llmsandbox.NetworkFull && len(n.Allow) == 0:
		return nil
	case most.Mode == "" || most.Mode == llmsandbox.NetworkNone:
		return fmt.Errorf("network: %w: sandboxes have no network", ErrNotAllowed)
	case n.Mode == llmsandbox.NetworkFull && most.Mode != llmsandbox.NetworkFull:
		return fmt.Errorf("network: %w: sandboxes may reach %s only", ErrNotAllowed, strings.Join(most.Allow, ", "))
	}
	for _, rule := range n.Allow {
		// With a full network any name is allowed, but an address may be one of the operator's own network.
		if !slices.Contains(most.Allow, rule) && (most.Mode != llmsandbox.NetworkFull || !isName(rule)) {
			return fmt.Errorf("network: %w: the rule %q is none of the operator's", ErrNotAllowed, rule)
		}
	}
	return nil
}

// isName reports whether a rule is about a name that is public: names may lead to private addresses only where a rule has the address.
func isName(rule string) bool {
	host, port, _ := strings.Cut(rule, ":")
	if strings.Contains(port, ":") || rule == llmsandbox.PackageHosts { // an address, and sources that may be the operator's own
		return false
	}
	last := host[strings.LastIndexByte(host, '.')+1:]
	return strings.Trim(last, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-") == "" && last != ""
}

func (c *Config) boundImage(image *string) error {
	own := c.Sandbox.Image
	if *image == "" || *image == own {
		*image = own
		return nil
	}
	for _, allowed := range c.Images {
		if prefix, any := strings.CutSuffix(allowed, "*"); *image == allowed || any && strings.HasPrefix(*image, prefix) {
			return nil
		}
	}
	return fmt.Errorf("image: %w: the operator allows %s", ErrNotAllowed, cmp.Or(strings.Join(c.Images, ", "), "no others than the server's own"))
}
