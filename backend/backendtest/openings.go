package backendtest

import (
	"context"
	"testing"

	"github.com/llmsandbox/llmsandbox"
)

// openAhead is how many sandboxes of [openings] may be open beside the one that is used.
const openAhead = 3

// openings are the sandboxes of cases that each need one of their own. Where opening one
// is mostly waiting, a few are opened while the case before them runs; the cases
// themselves run one after the other, and disturb each other no more than before.
type openings struct {
	suite   *suite
	options []llmsandbox.Options
	opened  []*opening // nil: not begun
	used    []bool     // the user of one closes it
}

// An opening is a sandbox that may not be open yet.
type opening struct {
	cancel context.CancelFunc
	done   chan struct{} // closed: sb or err is set
	sb     *llmsandbox.Sandbox
	err    error
}

// wait returns the sandbox once it is open, or why it could not be opened.
func (x *opening) wait() (*llmsandbox.Sandbox, error) {
	<-x.done
	return x.sb, x.err
}

// begin opens a sandbox, and does not wait for it.
func (s *suite) begin(o llmsandbox.Options) *opening {
	o = s.options(o)
	o.BestEffort = true // what must hold is asked for by the test itself
	ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
	open := s.Open
	if open == nil {
		open = llmsandbox.Open
	}
	x := &opening{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(x.done)
		defer cancel()
		x.sb, x.err = open(ctx, &o)
	}()
	return x
}

// openings returns the sandboxes with these options, none of which is open yet. They are
// gone with the test.
func (s *suite) openings(t *testing.T, options []llmsandbox.Options) *openings {
	t.Helper()
	o := &openings{suite: s, options: options, opened: make([]*opening, len(options)), used: make([]bool, len(options))}
	t.Cleanup(func() {
		var unused []*opening
		for i, x := range o.opened {
			if x != nil && !o.used[i] {
				unused = append(unused, x)
			}
		}
		closeUnused(t, unused)
	})
	return o
}

// use returns the sandbox at an index, which is closed with t and has these programs, and
// begins to open the next ones. It is not called concurrently.
func (o *openings) use(t *testing.T, index int, programs ...string) *llmsandbox.Sandbox {
	t.Helper()
	if language := o.options[index].Language; language != "" {
		o.suite.has(t, Feature(language))
	}
	for i := index; i <= min(index+openAhead, len(o.options)-1); i++ {
		if _, lacks := o.suite.Lacks[Feature(o.options[i].Language)]; !lacks && o.opened[i] == nil {
			o.opened[i] = o.suite.begin(o.options[i])
		}
	}
	o.used[index] = true
	sb, err := o.opened[index].wait()
	closeWith(t, sb, err)
	requirePrograms(t, sb, programs)
	return sb
}
