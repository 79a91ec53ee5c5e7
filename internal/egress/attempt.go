package egress

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
)

// An Attempt is one try of a sandbox to reach something.
type Attempt struct {
	Time time.Time
	// Protocol is "http" for a request in plain HTTP, "connect" or "socks5" for a tunnel;
	// empty when it did not get so far as to say.
	Protocol string
	// Name is the host asked for, as it was asked; Address what was dialled, if it was.
	Name    string
	Address netip.Addr
	Port    uint16
	Allowed bool
	// Refused is the Refusal's Code of what was not allowed.
	Refused string
	// Reason says why not, or what went wrong with what was allowed.
	Reason string
	// Sent and Received are bytes from and to the sandbox: of a request the bodies', of
	// a tunnel all that went through it.
	Sent, Received int64
	// Duration is from the request to the connection's end; 0 while it is open.
	Duration time.Duration
}

// An attempt is an Attempt under way. One goroutine has it, but for the counts and
// the reason.
type attempt struct {
	Attempt
	counts
	p  *Proxy
	mu sync.Mutex // of Reason
}

func (p *Proxy) begin(protocol, name string, port uint16) *attempt {
	a := &attempt{Attempt: Attempt{Time: time.Now(), Protocol: protocol, Name: printable(name), Port: port}, p: p}
	a.publish()
	return a
}

// opened notes that there is a connection.
func (a *attempt) opened(up *upstream) {
	a.Allowed, a.Address = true, up.addr
	a.publish()
}

// failed notes why nothing came of it. What was allowed and failed stays allowed.
func (a *attempt) failed(err error) {
	a.Allowed = true
	if r := refusalOf(err); r != nil {
		a.Allowed, a.Refused = false, string(r.Code)
	}
	a.note(err.Error())
}

// note adds to the reason, what is not there already.
func (a *attempt) note(what string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if strings.Contains(a.Reason, what) || len(a.Reason) > 500 {
		return
	}
	if a.Reason != "" {
		a.Reason += "; "
	}
	a.Reason += what
}

// end logs it.
func (a *attempt) end() {
	a.Duration = max(time.Since(a.Time), 1)
	a.Sent, a.Received = a.sent.Load(), a.received.Load()
	a.p.cfg.Log(a.Attempt)
	a.unpublish()
}

// printable bounds a hostile name and escapes what a terminal would obey.
func printable(name string) string {
	name = clip(name)
	if strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r > '~' }) {
		return quoted(name)
	}
	return name
}

// openAttempts are the attempts that have not ended, as they were when they were last
// published.
type openAttempts struct {
	mu  sync.Mutex
	all map[*attempt]Attempt
}

// publish makes the attempt, as it now is, known to [Proxy.Open].
func (a *attempt) publish() {
	o := &a.p.open
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.all == nil {
		o.all = map[*attempt]Attempt{}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	o.all[a] = a.Attempt
}

// unpublish is called once the attempt has been logged.
func (a *attempt) unpublish() {
	o := &a.p.open
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.all, a)
}

// Open returns the attempts that have begun and not been logged yet, the oldest first.
// They have no Duration, and what was not known when they began may be missing.
func (p *Proxy) Open() []Attempt {
	p.open.mu.Lock()
	defer p.open.mu.Unlock()
	return slices.SortedFunc(maps.Values(p.open.all), func(a, b Attempt) int { return a.Time.Compare(b.Time) })
}
