package gateway

import (
	"slices"
	"sync"
	"time"

	"github.com/llmsandbox/llmsandbox/internal/egress"
)

const (
	// maxAttempts bounds the attempts of one record.
	maxAttempts = 1000
	// SettleTime bounds how long a record waits for the end of connections whose program
	// has ended. They end with it, some moments later.
	SettleTime = 200 * time.Millisecond
	// AnswerTime is that where programs go on: connections whose answer they have had end
	// some moments later, and others may be meant to stay.
	AnswerTime = 20 * time.Millisecond
)

// A Log has the attempts of a sandbox, also those of several gateways that serve it one
// after the other. The zero value is ready. It is safe for concurrent use.
type Log struct {
	// Total has what the sandbox has sent and received.
	Total egress.Total

	mu      sync.Mutex
	hook    func(egress.Attempt)
	records map[*Record]struct{}
}

// A Record has the attempts that began during a run.
type Record struct {
	log      *Log
	proxy    *egress.Proxy
	since    time.Time
	attempts []egress.Attempt
	dropped  int
	changed  chan struct{} // has an element when attempts have ended since it was read
}

// SetHook has hook called with each attempt that has ended; nil is none.
func (l *Log) SetHook(hook func(egress.Attempt)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hook = hook
}

// Record begins a record of the gateway's attempts, and lets a gateway whose agent could not
// be reached try again.
func (g *Gateway) Record() *Record {
	g.retry()
	return g.log.begin(g.proxy)
}

func (l *Log) begin(proxy *egress.Proxy) *Record {
	r := &Record{log: l, proxy: proxy, since: time.Now(), changed: make(chan struct{}, 1)}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.records == nil {
		l.records = map[*Record]struct{}{}
	}
	l.records[r] = struct{}{}
	return r
}

// ended takes an attempt that has ended.
func (l *Log) ended(a egress.Attempt) {
	l.mu.Lock()
	hook := l.hook
	for r := range l.records {
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
func (r *Record) add(a egress.Attempt) {
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

// alone says that no other record is under way.
func (r *Record) alone() bool {
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	return len(r.log.records) == 1
}

// End ends the record, waits at most for settle until what is open has ended, and returns the
// attempts in the order in which they began, and how many more there were. Those that are
// still open have no Duration. The record of a nil *Record is empty.
func (r *Record) End(settle time.Duration) (attempts []egress.Attempt, dropped int) {
	if r == nil {
		return nil, 0
	}
	open := r.open()
	if len(open) > 0 && r.alone() {
		late := time.After(settle)
		for over := false; !over && len(open) > 0; {
			select {
			case <-r.changed:
			case <-late:
				over = true
			}
			open = r.open()
		}
	}
	r.log.mu.Lock()
	delete(r.log.records, r)
	for _, a := range open {
		same := func(b egress.Attempt) bool { return a.Time.Equal(b.Time) && a.Name == b.Name && a.Port == b.Port }
		if !slices.ContainsFunc(r.attempts, same) {
			r.add(a)
		}
	}
	r.log.mu.Unlock()
	slices.SortStableFunc(r.attempts, func(a, b egress.Attempt) int { return a.Time.Compare(b.Time) })
	return r.attempts, r.dropped
}

// open are the attempts of the record that have not ended.
func (r *Record) open() []egress.Attempt {
	return slices.DeleteFunc(r.proxy.Open(), func(a egress.Attempt) bool { return a.Time.Before(r.since) })
}
