package service

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/ctxend"
	"github.com/llmsandbox/llmsandbox/internal/errclass"
	"github.com/llmsandbox/llmsandbox/pool"
)

// Labels of created sandboxes. Requests cannot set or see those with the prefix.
const (
	labelPrefix  = "llmsandbox."
	projectLabel = labelPrefix + "project"
	timeoutLabel = labelPrefix + "timeout-ms" // of a program, as its creator set it
	outputLabel  = labelPrefix + "output"
	// artifactsLabel has its creator's artifactOptions, where there are any.
	artifactsLabel = labelPrefix + "artifacts"
	// imageLabel is the image that a request has named, where that is one of the project.
	imageLabel = labelPrefix + "image"
)

// A handle is an open sandbox. It is kept open between requests, since to attach takes longer than many of them.
type handle struct {
	sandbox *llmsandbox.Sandbox
	project string
	meter   *meter
	left    chan struct{} // closed when the service lets go of it

	kernelsMu sync.Mutex
	kernels   map[string]*heldKernel // by their id

	programsMu   sync.Mutex          // held to start, find and take up one
	programs     map[uint64]*Program // those that run, by their id
	programsGone bool                // no other is held
	following    sync.WaitGroup
}

// forgetTime bounds how long it may take to drop what is kept of a sandbox that has ended. What is not dropped then, its age drops.
const forgetTime = 30 * time.Second

func (h *handle) lives() bool {
	return !ctxend.Closed(h.sandbox.Done())
}

// Create opens a sandbox of a project. Of the options ID and Supervisor are the service's to set.
func (s *Service) Create(ctx context.Context, project string, o llmsandbox.Options) (*llmsandbox.Sandbox, error) {
	if err := checkLabels(o.Labels); err != nil {
		return nil, err
	}
	o, err := withTemplate(o)
	if err != nil {
		return nil, err
	}
	if err := s.checkImports(ctx, o); err != nil {
		return nil, err
	}
	own := o.Artifacts != (llmsandbox.ArtifactOptions{})
	if o, err = s.complete(project, o); err != nil {
		return nil, err
	}
	if err := s.Admit(ctx, project); err != nil {
		return nil, err
	}
	o.ID = newID(project)
	o.Labels[projectLabel] = project
	o.Labels[timeoutLabel] = strconv.FormatInt(o.Limits.Timeout.Milliseconds(), 10)
	o.Labels[outputLabel] = strconv.FormatInt(o.Limits.Output, 10)
	if own {
		o.Labels[artifactsLabel] = artifactsText(o.Artifacts)
	}
	o.Supervisor = s.cfg.Supervisor
	done, err := s.makeRoom(ctx, project, backend.Info{ID: o.ID, Limits: backend.Limits{Memory: o.Limits.Memory, Disk: o.Limits.Disk}})
	if err != nil {
		return nil, err
	}
	defer done()
	if m := s.cfg.Replica; m != nil { // before it is there, or another server might take it
		if err := m.Make(ctx, project, o.ID, networkText(o.Network)); err != nil {
			return nil, err
		}
	}
	sb, err := llmsandbox.Open(ctx, &o)
	if err != nil {
		err = s.notOpened(project, err)
		if s.cfg.Replica != nil {
			err = errors.Join(err, s.forget(project, o.ID, s.cfg.Replica.ID))
		}
		return nil, err
	}
	if _, err := s.keep(sb, project, true); err != nil { // no other request knows its id
		return nil, errors.Join(err, sb.Destroy(context.WithoutCancel(ctx)))
	}
	s.changed()
	return sb, nil
}

// checkLabels refuses those that are the server's.
func checkLabels(labels map[string]string) error {
	for name := range labels {
		if strings.HasPrefix(name, labelPrefix) {
			return fmt.Errorf("label %q: %w: labels that begin with %s are the server's", name, llmsandbox.ErrInvalid, labelPrefix)
		}
	}
	return nil
}

// complete gives options of a project what the operator has set.
func (s *Service) complete(project string, o llmsandbox.Options) (llmsandbox.Options, error) {
	image := o.Image
	if isOwn(image) {
		o.Image = ""
	}
	if err := s.cfg.bound(&o); err != nil {
		return o, err
	}
	if err := s.boundOwnImage(project, image, &o); err != nil {
		return o, err
	}
	volumes, err := s.cfg.boundVolumes(project, o.Volumes)
	if err != nil {
		return o, err
	}
	if err := checkEnvironment(o.Environment); err != nil {
		return o, err
	}
	own := s.cfg.Sandbox
	own.Language, own.Image, own.Limits, own.Network, own.Lifetime = o.Language, o.Image, o.Limits, o.Network, o.Lifetime
	own.Libraries, own.IdleTimeout, own.Resettable = o.Libraries, o.IdleTimeout, o.Resettable
	own.Environment = cmp.Or(o.Environment, own.Environment)
	own.Volumes = slices.Concat(own.Volumes, volumes)
	own.Env, own.Labels = both(own.Env, o.Env), both(own.Labels, o.Labels)
	if isOwn(image) {
		own.Labels[imageLabel] = image
	}
	own.Artifacts, own.Sudo, own.User, own.Workdir = o.Artifacts, o.Sudo, cmp.Or(o.User, own.User), cmp.Or(o.Workdir, own.Workdir)
	if len(o.Imports) > 0 {
		own.Imports = o.Imports
	}
	if !hasNetwork(own.Network) {
		own.Secrets = nil // which are of use on a network only
	}
	own.Secrets = slices.Concat(own.Secrets, o.Secrets) // Open takes those only that the network reaches
	return own, nil
}

func hasNetwork(n llmsandbox.Network) bool {
	return n.Mode != "" && n.Mode != llmsandbox.NetworkNone || len(n.Allow) > 0
}

// both has what two maps have; where both have something, b's counts.
func both(a, b map[string]string) map[string]string {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, b)
	return all
}

// makeRoom fails with ErrQuota where a project may not have one sandbox more, those that are being created since before included.
func (s *Service) makeRoom(ctx context.Context, project string, wanted backend.Info) (done func(), err error) {
	s.mu.Lock()
	making := append(s.making[project], wanted)
	s.making[project] = making
	s.mu.Unlock()
	done = func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		left := slices.DeleteFunc(slices.Clone(s.making[project]), func(i backend.Info) bool { return i.ID == wanted.ID })
		if s.making[project] = left; len(left) == 0 {
			delete(s.making, project)
		}
	}
	list, err := s.List(ctx, project)
	if err == nil {
		listed := map[string]bool{}
		for _, i := range list {
			listed[i.ID] = true
		}
		list = append(list, slices.DeleteFunc(slices.Clone(making), func(i backend.Info) bool { return listed[i.ID] })...)
		err = s.cfg.quota(list)
	}
	if err != nil {
		done()
		return nil, err
	}
	return done, nil
}

// quota fails with ErrQuota where these sandboxes are more than a project may have.
func (c *Config) quota(list []backend.Info) error {
	if len(list) > c.MaxSandboxes {
		return fmt.Errorf("%w: the project has %d sandboxes, of at most %d: remove one first", ErrQuota, len(list)-1, c.MaxSandboxes)
	}
	return cmp.Or(
		c.together("limits.memory_bytes", c.MaxMemory, list, func(l backend.Limits) int64 { return l.Memory }),
		c.together("limits.disk_bytes", c.MaxDisk, list, func(l backend.Limits) int64 { return l.Disk }),
	)
}

// A Quota is what a project has of something, and what it may have: 0 where nothing bounds it.
type Quota struct{ Used, Most int64 }

// Quotas are those of a project. Memory and Disk are of its sandboxes' limits together; projects that may have no Volumes or Images have none. CPU, in milliseconds,
// and Sent, in bytes, are of the day that ends at Tomorrow, which is zero where they are not counted.
type Quotas struct {
	Sandboxes, Memory, Disk, Volumes, Images, CPU, Sent Quota
	Tomorrow                                            time.Time
}

// Quotas tells what a project has.
func (s *Service) Quotas(ctx context.Context, project string) (Quotas, error) {
	list, err := s.List(ctx, project)
	if err != nil {
		return Quotas{}, err
	}
	q := Quotas{
		Sandboxes: Quota{int64(len(list)), int64(s.cfg.MaxSandboxes)}, Memory: Quota{Most: s.cfg.MaxMemory}, Disk: Quota{Most: s.cfg.MaxDisk}, Volumes: Quota{Most: int64(s.cfg.MaxVolumes)},
	}
	for _, i := range list {
		q.Memory.Used += max(i.Limits.Memory, 0)
		q.Disk.Used += max(i.Limits.Disk, 0)
	}
	if s.cfg.MaxVolumes > 0 {
		volumes, err := s.Volumes(ctx, project)
		if err != nil {
			return Quotas{}, err
		}
		q.Volumes.Used = int64(len(volumes))
	}
	if s.images != nil {
		list, err := s.images.List(project)
		if err != nil {
			return Quotas{}, err
		}
		q.Images = Quota{int64(len(list)), int64(s.cfg.MaxImages)}
	}
	if s.usage != nil {
		s.usage.settle(project)
		used, until, err := s.usage.today(ctx, project)
		if err != nil {
			return Quotas{}, err
		}
		q.CPU, q.Sent, q.Tomorrow = Quota{used.CPU.Milliseconds(), s.cfg.MaxDayCPU.Milliseconds()}, Quota{used.Sent, s.cfg.MaxDaySent}, until
	}
	return q, nil
}

// together fails with ErrQuota where one limit of all these sandboxes is more than most; 0 is any.
func (c *Config) together(name string, most int64, list []backend.Info, of func(backend.Limits) int64) error {
	left := most
	for _, i := range list {
		n := of(i.Limits)
		if most > 0 && (n <= 0 || n > left) { // without a limit it is more than any
			return fmt.Errorf("%s: %w: the project's sandboxes may have %d together: remove one first, or ask for less", name, ErrQuota, most)
		}
		left -= n
	}
	return nil
}

// keep holds a sandbox open until it ends, which isNew where it was just made. Where another request was faster, the handle is that one's.
func (s *Service) keep(sb *llmsandbox.Sandbox, project string, isNew bool) (*handle, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	if h := s.handles[sb.ID()]; h != nil {
		return h, nil
	}
	h := &handle{sandbox: sb, project: project, left: make(chan struct{})}
	h.meter = s.usage.begin(&meter{counters: sb, project: project, known: isNew, stays: !isNew || s.cfg.Supervisor != nil})
	s.handles[sb.ID()] = h
	s.working.Go(func() {
		select {
		case <-sb.Done():
		case <-h.left:
		}
		select {
		case <-h.left:
			return // only the handle has ended
		default:
		}
		s.mu.Lock()
		if s.handles[sb.ID()] == h {
			delete(s.handles, sb.ID())
		}
		closed := s.closed
		s.mu.Unlock()
		s.letGoPrograms(h)
		s.usage.end(h.meter, !closed)
		err := sb.Close()
		s.changed()
		if !closed { // else it may be that only the handle has ended
			holder := ""
			if s.cfg.Replica != nil {
				holder = s.cfg.Replica.ID
			}
			err = errors.Join(err, s.forget(project, sb.ID(), holder))
		}
		if err != nil {
			s.cfg.Log.Warn("let go of a sandbox that has ended", "sandbox", sb.ID(), "error", err)
		}
	})
	return h, nil
}

// forget drops what is kept of a sandbox that has ended, and that a replica holds, if there are any.
func (s *Service) forget(project, id, holder string) error {
	ctx, cancel := context.WithTimeout(context.Background(), forgetTime)
	defer cancel()
	err := s.records.RemoveRecords(ctx, project, id)
	if s.cfg.Replica != nil {
		err = errors.Join(err, s.cfg.Replica.Drop(ctx, id, holder))
	}
	return err
}

// Get returns a sandbox of a project, which the service keeps: callers do not close it. It fails with llmsandbox.ErrNotFound, also for
// the sandbox of another project.
func (s *Service) Get(ctx context.Context, project, id string) (*llmsandbox.Sandbox, error) {
	h, err := s.get(ctx, project, id)
	if err != nil {
		return nil, err
	}
	return h.sandbox, nil
}

// Owner is the project of a sandbox, for callers that know it by its id alone. Where look is not set, the backend is not asked for sandboxes that the service
// does not hold. It fails with llmsandbox.ErrNotFound.
func (s *Service) Owner(ctx context.Context, id string, look bool) (project string, err error) {
	s.mu.Lock()
	h := s.handles[id]
	s.mu.Unlock()
	if h != nil && h.lives() {
		return h.project, nil
	}
	if !look {
		return "", notFound(id)
	}
	all, err := llmsandbox.List(ctx, s.cfg.Sandbox.Backend)
	if err != nil {
		return "", err
	}
	for i := range all {
		if project := all[i].Labels[projectLabel]; all[i].ID == id && project != "" && strings.HasPrefix(id, idPrefix(project)) {
			return project, nil
		}
	}
	return "", notFound(id)
}

// Held are the ids of the sandboxes that the service holds, of all projects.
func (s *Service) Held() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.handles))
}

func (s *Service) get(ctx context.Context, project, id string) (*handle, error) {
	if !strings.HasPrefix(id, idPrefix(project)) {
		return nil, notFound(id) // before anything is looked up, so that it takes as long for one that there is as for another
	}
	s.mu.Lock()
	h := s.handles[id]
	closed := s.closed
	s.mu.Unlock()
	switch {
	case closed:
		return nil, ErrClosed
	case h != nil && h.project == project && h.lives():
		return h, s.current()
	case h != nil:
		return nil, notFound(id)
	}
	h, _, err := s.taking.Do(ctx, id, nil, func(ctx context.Context, _ func(backend.Progress)) (*handle, error) {
		var sb *llmsandbox.Sandbox
		var err error
		if s.cfg.Replica != nil {
			sb, err = s.take(ctx, project, id)
		} else {
			sb, err = s.attach(ctx, project, id, nil)
		}
		if err != nil {
			return nil, err
		}
		h, err := s.keep(sb, project, false)
		if err != nil || h.sandbox != sb {
			err = errors.Join(err, sb.Close())
		}
		return h, err
	})
	return h, err
}

func (s *Service) attach(ctx context.Context, project, id string, over *llmsandbox.TakeOver) (*llmsandbox.Sandbox, error) {
	info, err := s.Find(ctx, project, id)
	if err != nil {
		return nil, err
	}
	number := func(label string, unit, most int64) int64 {
		n, err := strconv.ParseInt(info.Labels[label], 10, 64)
		if err != nil || n == 0 || most >= 0 && (n < 0 || n > most/unit) {
			return most // what is on the sandbox is not trusted to be more than the operator allows
		}
		return n * unit
	}
	limits := s.cfg.Sandbox.Limits
	return llmsandbox.Attach(ctx, id, &llmsandbox.AttachOptions{
		Backend: s.cfg.Sandbox.Backend, Artifacts: s.cfg.artifactsOf(info.Labels[artifactsLabel]), Policy: s.cfg.Sandbox.Policy, Logger: s.cfg.Log, TakeOver: over,
		Limits: llmsandbox.Limits{
			Timeout: time.Duration(number(timeoutLabel, int64(time.Millisecond), int64(limits.Timeout))),
			Output:  number(outputLabel, 1, limits.Output),
		},
	})
}

func notFound(id string) error {
	return errclass.Errorf(llmsandbox.ErrNotFound, "there is no sandbox %q: it has ended, or never was", id)
}

// List returns a project's sandboxes, in the order of their creation, with the labels that their creator gave them.
func (s *Service) List(ctx context.Context, project string) ([]backend.Info, error) {
	all, err := llmsandbox.List(ctx, s.cfg.Sandbox.Backend)
	if err != nil {
		return nil, err
	}
	return of(project, all), nil
}

// ListAll returns the sandboxes of all projects, as List does for one.
func (s *Service) ListAll(ctx context.Context) (map[string][]backend.Info, error) {
	all, err := llmsandbox.List(ctx, s.cfg.Sandbox.Backend)
	if err != nil {
		return nil, err
	}
	projects := map[string][]backend.Info{}
	for _, i := range all {
		if project := i.Labels[projectLabel]; projects[project] == nil && project != "" {
			projects[project] = of(project, all)
		}
	}
	return projects, nil
}

// of are those of all sandboxes that belong to a project, in the order of their creation.
func of(project string, all []backend.Info) []backend.Info {
	var own []backend.Info
	for _, i := range all {
		if i.Labels[projectLabel] == project && strings.HasPrefix(i.ID, idPrefix(project)) {
			i.Image = cmp.Or(i.Labels[imageLabel], i.Image)
			own = append(own, i)
		}
	}
	slices.SortFunc(own, func(a, b backend.Info) int { return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID)) })
	return own
}

// Find describes a project's sandbox as List does. It fails with llmsandbox.ErrNotFound.
func (s *Service) Find(ctx context.Context, project, id string) (backend.Info, error) {
	list, err := s.List(ctx, project)
	if err != nil {
		return backend.Info{}, err
	}
	at := slices.IndexFunc(list, func(i backend.Info) bool { return i.ID == id })
	if at < 0 {
		return backend.Info{}, notFound(id)
	}
	return list[at], nil
}

// Ended reports whether a sandbox of a project has ended. It waits a moment for that: what fails because of the end may be seen before the end is.
func (s *Service) Ended(ctx context.Context, project, id string) bool {
	s.mu.Lock()
	h := s.handles[id]
	s.mu.Unlock()
	if h == nil || h.project != project {
		_, err := s.Find(ctx, project, id)
		return errors.Is(err, llmsandbox.ErrNotFound)
	}
	select {
	case <-h.sandbox.Done():
		return true
	case <-time.After(time.Second):
		return false
	}
}

// UserLabels are those that a sandbox's creator gave it.
func UserLabels(labels map[string]string) map[string]string {
	own := maps.Clone(labels)
	maps.DeleteFunc(own, func(name, _ string) bool { return strings.HasPrefix(name, labelPrefix) })
	return own
}

// Remove ends a project's sandbox and removes all of it.
func (s *Service) Remove(ctx context.Context, project, id string) error {
	h, err := s.get(ctx, project, id)
	if err != nil {
		return err
	}
	s.usage.read(h.meter)
	err = h.sandbox.Destroy(ctx)
	if errors.Is(err, llmsandbox.ErrClosed) || errors.Is(err, llmsandbox.ErrNotFound) {
		return notFound(id)
	}
	return err
}

// Reset makes a project's sandbox what it was at first.
func (s *Service) Reset(ctx context.Context, project, id string) error {
	h, err := s.get(ctx, project, id)
	if err != nil {
		return err
	}
	s.usage.read(h.meter)
	err = h.sandbox.Reset(ctx)
	s.usage.read(h.meter) // its counters may have begun again
	return err
}

// Pause stops all that runs in a project's sandbox until Resume.
func (s *Service) Pause(ctx context.Context, project, id string) error {
	h, err := s.get(ctx, project, id)
	if err != nil {
		return err
	}
	defer s.changed()
	return h.sandbox.Pause(ctx)
}

// Resume lets a project's sandbox go on that was paused, and any other anyway.
func (s *Service) Resume(ctx context.Context, project, id string) error {
	h, err := s.get(ctx, project, id)
	if err != nil {
		return err
	}
	defer s.changed()
	return h.sandbox.Resume(ctx)
}

// MaxLifetime is the longest that a sandbox may have; 0: any.
func (s *Service) MaxLifetime() time.Duration { return s.cfg.MaxLifetime }

// SetLifetime has a sandbox end so long from now.
func (s *Service) SetLifetime(ctx context.Context, sb *llmsandbox.Sandbox, lifetime time.Duration) error {
	if lifetime <= 0 {
		return fmt.Errorf("lifetime_seconds: %w: it must be more than 0", llmsandbox.ErrInvalid)
	}
	if err := atMost("lifetime_seconds", &lifetime, s.cfg.MaxLifetime, time.Second); err != nil {
		return err
	}
	defer s.changed()
	return sb.SetDeadline(ctx, time.Now().Add(lifetime))
}

// SetNetwork changes what a sandbox may reach.
func (s *Service) SetNetwork(ctx context.Context, sb *llmsandbox.Sandbox, n llmsandbox.Network) error {
	if err := s.cfg.boundNetwork(&n); err != nil {
		return err
	}
	if err := sb.SetNetwork(ctx, n); err != nil || s.cfg.Replica == nil {
		return err
	}
	if err := s.cfg.Replica.KeepNetwork(ctx, sb.ID(), networkText(n)); err != nil {
		return fmt.Errorf("the network is changed, and will be what it was before if another server takes the sandbox: %w", err)
	}
	return nil
}

// Enter takes a place for a program of a project that is to run, which leave gives back. Where all are taken, projects get one in turn.
// It fails as Admit does, and with ErrBusy.
func (s *Service) Enter(ctx context.Context, project string) (leave func(), err error) {
	if err := s.spent(ctx, project); err != nil {
		return nil, err
	}
	leave, err = s.queue.Enter(ctx, project)
	if err != nil {
		return nil, err
	}
	if err := s.hasMemory(); err != nil {
		leave()
		return nil, err
	}
	return leave, nil
}

// Waiting is how many programs wait for a place.
func (s *Service) Waiting() int { return s.queue.Waiting() }

// Acquire returns a sandbox of a project that has not been used, for one program. It goes with all that is in it when it is released. Where the options ask for
// what the sandboxes that are kept ready have, it is one of these.
func (s *Service) Acquire(ctx context.Context, project string, o llmsandbox.Options) (sb *llmsandbox.Sandbox, release func(), err error) {
	plain := o.Limits == (llmsandbox.Limits{}) && o.Network.Mode == "" && len(o.Network.Allow) == 0 && len(o.Env) == 0 && len(o.Volumes) == 0 && !o.Resettable && !isOwn(o.Image)
	if o, err = s.complete(project, o); err != nil {
		return nil, nil, err
	}
	if plain {
		lease, err := s.warm.Acquire(ctx, &pool.AcquireOptions{Key: pool.Key{
			Language: o.Language, Image: o.Image, Libraries: o.Libraries, Environment: o.Environment,
		}})
		if err != nil {
			return nil, nil, err
		}
		m := s.usage.begin(&meter{counters: lease.Sandbox(), project: project, once: true, known: true})
		return lease.Sandbox(), func() { s.usage.end(m, true); lease.Release() }, nil
	}
	if sb, err = llmsandbox.Open(ctx, &o); err != nil {
		return nil, nil, s.notOpened(project, err)
	}
	m := s.usage.begin(&meter{counters: sb, project: project, once: true, known: true})
	return sb, func() {
		s.usage.end(m, true)
		defer s.closes()()
		if err := sb.Close(); err != nil { // the backend's garbage collection finds it
			s.cfg.Log.Error("a sandbox could not be removed", "sandbox", sb.ID(), "error", err)
		}
	}, nil
}

// closes notes that a sandbox for one program is being closed, which end tells to have been.
func (s *Service) closes() (end func()) {
	closed := make(chan struct{})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closing[closed] = true
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.closing, closed)
		close(closed)
	}
}

// awaitClosed waits for the sandboxes that are being closed, each of one program whose result may have been answered.
func (s *Service) awaitClosed(ctx context.Context) error {
	s.mu.Lock()
	all := slices.Collect(maps.Keys(s.closing))
	s.mu.Unlock()
	for _, closed := range all {
		select {
		case <-closed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// newID is the id of a new sandbox of a project.
func newID(project string) string { return idPrefix(project) + strings.ToLower(rand.Text()[:16]) }

// idPrefix begins the ids of a project's sandboxes. It tells nothing of the project but that two sandboxes are of the same one.
func idPrefix(project string) string {
	sum := sha256.Sum256([]byte(projectLabel + " " + project))
	return "sb-" + hex.EncodeToString(sum[:4]) + "-"
}
