package llmsandbox

import (
	"slices"
	"sync"
	"time"

	"github.com/llmsandbox/llmsandbox/internal/egress"
)

const (
	// maxAttempts bounds the attempts that one result carries.
	maxAttempts = 1000
	// settleTime bounds how long a result waits for the end of connections whose program
	// has ended. They end with it, some moments later.
	settleTime = 200 * time.Millisecond
	// answerTime is that where programs go on: what they have had their answer of is
	// over some moments later, and other connections may be meant to stay.
	answerTime = 20 * time.Millisecond
)

// A networkLog hands attempts on to the runs during which they began.
type networkLog struct {
	mu   sync.Mutex
	hook func(NetworkAttempt)
	runs map[*attemptRecord]struct{}
}

// A runNetwork is what a run knows of its sandbox's network.
type runNetwork struct {
	record *attemptRecord
	proxy  *egress.Proxy
}

// watch records attempts from now on; nil without a network.
func (n *netState) watch() *runNetwork {
	on := n.on.Load()
	if on == nil {
		return nil
	}
	on.gate.nudge()
	return &runNetwork{record: n.log.begin(), proxy: on.gate.proxy}
}

// end ends the record, waits at most for so long until what is open has ended, and
// returns the attempts, and how many were dropped.
func (n *runNetwork) end(settle time.Duration) ([]NetworkAttempt, int) {
	if n == nil {
		return nil, 0
	}
	return n.record.end(n.proxy, settle)
}

// networkInto ends a run's record and puts it into its result.
func (r *run) networkInto(res *Result) {
	settle := settleTime
	if r.opts.keepChildren {
		settle = answerTime
	}
	res.Network, res.NetworkDropped = r.network.end(settle)
}

// An attemptRecord is what one run's result will carry.
type attemptRecord struct {
	log      *networkLog
	since    time.Time
	attempts []NetworkAttempt
	dropped  int
	changed  chan struct{} // has an element when attempts have ended since it was read
}

func (l *networkLog) setHook(hook func(NetworkAttempt)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hook = hook
}

// begin starts a record.
func (l *networkLog) begin() *attemptRecord {
	r := &attemptRecord{log: l, since: time.Now(), changed: make(chan struct{}, 1)}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.runs == nil {
		l.runs = map[*attemptRecord]struct{}{}
	}
	l.runs[r] = struct{}{}
	return r
}

// ended takes an attempt that has ended.
func (l *networkLog) ended(a NetworkAttempt) {
	l.mu.Lock()
	hook := l.hook
	for r := range l.runs {
		if !a.Time.Before(r.since) {
			r.add(a)
		}
	}
	l.mu.Unlock()
	if hook != nil {
		hook(a)
	}
}

// add is called with the log's mu held.
func (r *attemptRecord) add(a NetworkAttempt) {
	if len(r.attempts) < maxAttempts {
		r.attempts = append(r.attempts, a)
	} else {
		r.dropped++
	}
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// alone tells that no other run is under way.
func (r *attemptRecord) alone() bool {
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	return len(r.log.runs) == 1
}

// end ends the record and returns its attempts in the order they began. Those that are
// still open are there without a Duration.
func (r *attemptRecord) end(proxy *egress.Proxy, settle time.Duration) (attempts []NetworkAttempt, dropped int) {
	open := r.open(proxy)
	if len(open) > 0 && r.alone() {
		timer := time.NewTimer(settle)
		defer timer.Stop()
		for over := false; !over && len(open) > 0; {
			select {
			case <-r.changed:
			case <-timer.C:
				over = true
			}
			open = r.open(proxy)
		}
	}
	r.log.mu.Lock()
	delete(r.log.runs, r)
	for _, a := range open {
		same := func(b NetworkAttempt) bool { return a.Time.Equal(b.Time) && a.Name == b.Name && a.Port == b.Port }
		if !slices.ContainsFunc(r.attempts, same) {
			r.add(a)
		}
	}
	r.log.mu.Unlock()
	slices.SortStableFunc(r.attempts, func(a, b NetworkAttempt) int { return a.Time.Compare(b.Time) })
	return r.attempts, r.dropped
}

// open are the attempts of the run that have not ended.
func (r *attemptRecord) open(proxy *egress.Proxy) (open []NetworkAttempt) {
	for _, a := range proxy.Open() {
		if !a.Time.Before(r.since) {
			open = append(open, NetworkAttempt(a))
		}
	}
	return open
}
