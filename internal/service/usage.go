package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/httpapi/metering"
)

// A SpentError is ErrQuota of what a project may use in a day.
type SpentError struct {
	Until time.Time // when the next day begins
	text  string
}

func (e *SpentError) Error() string { return e.text }

// Unwrap returns ErrQuota.
func (e *SpentError) Unwrap() error { return ErrQuota }

// How often counters are looked at, but never for more than a twentieth of the time; how soon what was counted is written, at most how much later where that
// fails; and how long looking and writing may take.
const (
	meterEvery     = 5 * time.Second
	meterShare     = 20
	usageDelay     = time.Second
	usageDelayMost = time.Minute
	meterTime      = 10 * time.Second
	// mostUnkept bounds the sandboxes that have ended and whose end is not kept yet. What is kept of others has no use, and its age drops it.
	mostUnkept = 10_000
)

// counters is a sandbox, but in tests.
type counters interface {
	ID() string
	Usage(ctx context.Context) (backend.Usage, error)
	Traffic(ctx context.Context) (llmsandbox.Traffic, error)
}

// A meter counts what one sandbox uses, for its project.
type meter struct {
	counters
	project string
	once    bool        // it is for one program, and is counted at once when that has ended
	stays   bool        // where it was counted to is kept, for a service after this one
	ended   atomic.Bool // something has ended in it since it was counted
	samples samples

	mu      sync.Mutex // held to count
	counted metering.Counted
	known   bool // counted is what is kept
	closed  bool
}

// usage counts what projects use, and has it kept. A nil *usage counts nothing.
type usage struct {
	cfg    *Config
	now    func() time.Time
	wake   chan struct{} // has an element where something has ended
	quit   chan struct{}
	ended  chan struct{}
	closed sync.Once

	writing sync.RWMutex // held to write, and to read what is kept together with what is not

	mu     sync.Mutex
	meters map[string]*meter // by the sandbox's id
	total  metering.Amount   // since the service began
	next   batch             // is written next
}

// A batch is what is written at once. There is one amount for each hour of a project, however long writing fails.
type batch struct {
	hours     map[hour]metering.Amount
	sandboxes map[string]metering.Counted
}

type hour struct {
	project string
	begins  int64 // in seconds since 1970
}

func newBatch() batch { return batch{map[hour]metering.Amount{}, map[string]metering.Counted{}} }

func newUsage(cfg *Config) *usage {
	if cfg.Usage == nil {
		return nil
	}
	u := &usage{cfg: cfg, now: cfg.now, wake: make(chan struct{}, 1), quit: make(chan struct{}), ended: make(chan struct{}), meters: map[string]*meter{}, next: newBatch()}
	go u.run()
	return u
}

// run counts and writes until close is called.
func (u *usage) run() {
	defer close(u.ended)
	every := time.NewTimer(meterEvery)
	defer every.Stop()
	delay := time.NewTimer(usageDelay)
	defer delay.Stop()
	wait := usageDelay
	for {
		select {
		case <-u.quit:
			if err := u.write(); err != nil {
				u.cfg.Log.Error("what projects have used could not be kept: what sandboxes that go on have used is counted again by the next server, and the rest is lost", "error", err)
			}
			return
		case <-u.wake:
			u.count(func(m *meter) bool { return !m.once && m.ended.Load() })
		case <-every.C:
			start := time.Now()
			u.count(func(*meter) bool { return true })
			every.Reset(max(meterEvery, meterShare*time.Since(start)))
		case <-delay.C:
			if err := u.write(); err != nil {
				wait = min(2*wait, usageDelayMost)
				u.cfg.Log.Error("what projects have used could not be kept, which is tried again", "after", wait, "error", err)
			} else {
				wait = usageDelay
			}
			delay.Reset(wait)
		}
	}
}

// close counts no more, and returns when what was counted is kept.
func (u *usage) close() {
	if u == nil {
		return
	}
	u.closed.Do(func() { close(u.quit) })
	<-u.ended
}

// write has what was counted kept. What is not kept is written the next time.
func (u *usage) write() error {
	u.writing.Lock()
	defer u.writing.Unlock()
	u.mu.Lock()
	b := u.next
	u.next = newBatch()
	u.mu.Unlock()
	if len(b.hours) == 0 && len(b.sandboxes) == 0 {
		return nil
	}
	hours := make([]metering.Hour, 0, len(b.hours))
	for h, a := range b.hours {
		hours = append(hours, metering.Hour{Project: h.project, Begins: time.Unix(h.begins, 0).UTC(), Amount: a})
	}
	// The same order everywhere, so that servers of one database do not wait for each other in a circle.
	slices.SortFunc(hours, func(a, b metering.Hour) int {
		return cmp.Or(strings.Compare(a.Project, b.Project), a.Begins.Compare(b.Begins))
	})
	sandboxes := slices.SortedFunc(maps.Values(b.sandboxes), func(a, b metering.Counted) int { return strings.Compare(a.Sandbox, b.Sandbox) })
	ctx, cancel := context.WithTimeout(context.Background(), meterTime)
	defer cancel()
	err := u.cfg.Usage.AddUsage(ctx, hours, sandboxes)
	if err == nil {
		return nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for h, a := range b.hours {
		u.next.hours[h] = u.next.hours[h].Plus(a)
	}
	maps.Copy(b.sandboxes, u.next.sandboxes)
	u.next.sandboxes = b.sandboxes
	return err
}

// add adds to what a project has used. The caller holds mu.
func (u *usage) add(project string, at time.Time, a metering.Amount) {
	if a == (metering.Amount{}) {
		return
	}
	h := hour{project, at.Truncate(time.Hour).Unix()}
	u.next.hours[h] = u.next.hours[h].Plus(a)
	u.total = u.total.Plus(a)
}

// ran adds a program that has ended.
func (u *usage) ran(project string) {
	if u == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.add(project, u.now(), metering.Amount{Runs: 1})
}

// begin begins to count by a meter. One that is not known was counted before.
func (u *usage) begin(m *meter) *meter {
	if u == nil {
		return nil
	}
	if m.known {
		m.counted.At = u.now().Truncate(time.Microsecond)
	}
	m.ended.Store(!m.known)
	u.mu.Lock()
	u.meters[m.ID()] = m
	u.mu.Unlock()
	if !m.known {
		u.awake()
	}
	return m
}

func (u *usage) awake() {
	select {
	case u.wake <- struct{}{}:
	default:
	}
}

// used notes that something has ended in a sandbox, which is counted soon: at the latest when somebody asks for its project's usage.
func (u *usage) used(sandbox string) {
	if u == nil {
		return
	}
	u.mu.Lock()
	m := u.meters[sandbox]
	u.mu.Unlock()
	if m == nil {
		return
	}
	m.ended.Store(true)
	if !m.once {
		u.awake()
	}
}

// count counts what sandboxes use that are wanted.
func (u *usage) count(wanted func(*meter) bool) {
	u.mu.Lock()
	all := slices.Collect(maps.Values(u.meters))
	u.mu.Unlock()
	for _, m := range all {
		if wanted(m) {
			u.read(m)
		}
	}
}

// settle counts the sandboxes of a project in which something has ended.
func (u *usage) settle(project string) {
	u.count(func(m *meter) bool {
		if m.project != project {
			return false
		}
		m.mu.Lock() // until it is counted, if it is being
		defer m.mu.Unlock()
		return m.ended.Load()
	})
}

// read counts what a sandbox has used since it was counted.
func (u *usage) read(m *meter) {
	if u == nil || m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	u.readLocked(m, false)
}

// end counts a sandbox for the last time. gone says that it has ended, or will.
func (u *usage) end(m *meter, gone bool) {
	if u == nil || m == nil {
		return
	}
	m.mu.Lock()
	u.readLocked(m, gone)
	m.mu.Unlock()
	u.drop(m)
}

// drop counts a sandbox no more.
func (u *usage) drop(m *meter) {
	if u == nil || m == nil {
		return
	}
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.meters[m.ID()] == m {
		delete(u.meters, m.ID())
	}
}

// readLocked is called with the meter's mu held.
func (u *usage) readLocked(m *meter, gone bool) {
	if m.closed {
		return
	}
	m.ended.Store(false) // what ends from now on is counted again
	ctx, cancel := context.WithTimeout(context.Background(), meterTime)
	defer cancel()
	if !m.known {
		kept, err := u.cfg.Usage.Counted(ctx, m.project, m.ID())
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			m.ended.Store(true)
			u.cfg.Log.Warn("up to where a sandbox was counted is not known: it is counted later", "sandbox", m.ID(), "error", err)
			return
		}
		m.counted, m.known = kept, true
	}
	// Times are whole microseconds, as they are kept: the next server goes on where this one has ended.
	now, before, a := u.now().Truncate(time.Microsecond), m.counted, metering.Amount{}
	// What cannot be told, because the sandbox ends or the backend does not count it, is not charged.
	used, err := m.Usage(ctx)
	if err == nil && used.CPUKnown {
		m.counted.CPU = used.CPU.Truncate(time.Microsecond)
		a.CPU = grown(before.CPU, m.counted.CPU)
		if used.MemoryKnown {
			m.samples.add(now, a.CPU, used.Memory)
		}
	}
	traffic, terr := m.Traffic(ctx)
	if terr == nil {
		a.Sent, m.counted.Sent = grown(before.Sent, traffic.Sent), traffic.Sent
		a.Received, m.counted.Received = grown(before.Received, traffic.Received), traffic.Received
	}
	if err = errors.Join(err, terr); err != nil {
		u.cfg.Log.Debug("a sandbox could not be counted", "sandbox", m.ID(), "error", err)
	}
	if !before.At.IsZero() {
		a.Lived = max(now.Sub(before.At), 0)
	}
	m.counted.Project, m.counted.Sandbox, m.counted.At, m.counted.Ended = m.project, m.ID(), now, gone
	u.mu.Lock()
	defer u.mu.Unlock()
	u.add(m.project, now, a)
	if m.stays && (!gone || len(u.next.sandboxes) < mostUnkept) {
		u.next.sandboxes[m.ID()] = m.counted
	}
}

// grown is what was added to a counter. One that is less than it was began again: the sandbox was made anew.
func grown[T int64 | time.Duration](before, now T) T {
	if now < before {
		return now
	}
	return now - before
}

// hours returns what a project has used in hours that begin at from or later and before to, what is not kept yet included.
func (u *usage) hours(ctx context.Context, project string, from, to time.Time) ([]metering.Hour, error) {
	own := map[int64]metering.Amount{}
	u.writing.RLock()
	defer u.writing.RUnlock()
	u.mu.Lock()
	for h, a := range u.next.hours {
		if h.project == project && h.begins >= from.Unix() && h.begins < to.Unix() {
			own[h.begins] = a
		}
	}
	u.mu.Unlock()
	kept, err := u.cfg.Usage.Usage(ctx, project, from, to)
	if err != nil {
		return nil, err
	}
	for _, h := range kept {
		own[h.Begins.Unix()] = own[h.Begins.Unix()].Plus(h.Amount)
	}
	all := make([]metering.Hour, 0, len(own))
	for _, begins := range slices.Sorted(maps.Keys(own)) {
		all = append(all, metering.Hour{Project: project, Begins: time.Unix(begins, 0).UTC(), Amount: own[begins]})
	}
	return all, nil
}

// today is what a project has used since the day began, in UTC, and when the next one begins.
func (u *usage) today(ctx context.Context, project string) (used metering.Amount, until time.Time, err error) {
	day := u.now().UTC().Truncate(24 * time.Hour)
	until = day.Add(24 * time.Hour)
	hours, err := u.hours(ctx, project, day, until)
	for _, h := range hours {
		used = used.Plus(h.Amount)
	}
	return used, until, err
}

// spent fails with a SpentError where a project has used what it may in a day.
func (s *Service) spent(ctx context.Context, project string) error {
	c := &s.cfg
	if c.MaxDayCPU == 0 && c.MaxDaySent == 0 {
		return nil
	}
	used, until, err := s.usage.today(ctx, project)
	if err != nil {
		return err
	}
	what := ""
	switch {
	case c.MaxDayCPU > 0 && used.CPU >= c.MaxDayCPU:
		what = fmt.Sprintf("%v of CPU time, of at most %v", used.CPU.Round(time.Second), c.MaxDayCPU)
	case c.MaxDaySent > 0 && used.Sent >= c.MaxDaySent:
		what = fmt.Sprintf("%d bytes sent over the network, of at most %d", used.Sent, c.MaxDaySent)
	default:
		return nil
	}
	return &SpentError{until, fmt.Sprintf("%v: the project has used %s in a day: try again on the next one, which begins at %s", ErrQuota, what, until.Format(time.RFC3339))}
}

// Ran counts a program or cell of a project that has ended in a sandbox; that is empty where it came to none.
func (s *Service) Ran(project, sandbox string) {
	s.usage.ran(project)
	s.usage.used(sandbox)
}

// Count counts what a sandbox of a project uses that is not the service's, until end is called, before it is removed.
func (s *Service) Count(project string, sb *llmsandbox.Sandbox) (end func()) {
	m := s.usage.begin(&meter{counters: sb, project: project, known: true})
	return func() { s.usage.end(m, true) }
}

var errNoUsage = fmt.Errorf("usage: %w: this server keeps none", llmsandbox.ErrUnsupported)

// Usage returns what a project has used in the hours that begin at from or later and before to. It fails with llmsandbox.ErrUnsupported where that is not kept.
func (s *Service) Usage(ctx context.Context, project string, from, to time.Time) ([]metering.Hour, error) {
	if s.usage == nil {
		return nil, errNoUsage
	}
	s.usage.settle(project)
	return s.usage.hours(ctx, project, from, to)
}

// Used is what all projects have used since the service began.
func (s *Service) Used() metering.Amount {
	if s.usage == nil {
		return metering.Amount{}
	}
	s.usage.mu.Lock()
	defer s.usage.mu.Unlock()
	return s.usage.total
}
