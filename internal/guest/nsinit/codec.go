package nsinit

import (
	"errors"
	"fmt"
	"slices"

	"github.com/llmsandbox/llmsandbox/internal/wire"
)

var errPlan = errors.New("malformed set-up plan")

// Encode returns the plan as Setup reads it, or an error when it exceeds what an
// agent accepts.
func (p *Plan) Encode() ([]byte, error) {
	b := wire.Append(nil, p)
	// One decoder decides what is acceptable, so the host learns of a plan that is
	// too large here and not from an agent that gave up.
	if _, err := Decode(b); err != nil {
		return nil, fmt.Errorf("encode set-up plan of %d steps, %d bytes: %w", len(p.Steps), len(b), err)
	}
	return b, nil
}

// Decode parses an encoded plan.
func Decode(b []byte) (*Plan, error) {
	if len(b) > maxPlan {
		return nil, fmt.Errorf("%w: %d bytes are more than %d", errPlan, len(b), maxPlan)
	}
	p := &Plan{}
	if rest, err := wire.Decode(b, p); err != nil || len(rest) > 0 || !p.valid() {
		return nil, errPlan
	}
	return p, nil
}

// Fields names the fields in their order on the wire.
func (p *Plan) Fields(c *wire.Coder) {
	c.Fields(&p.Hostname, &p.Workdir, &p.StartDir, &p.SetIDs, &p.OwnUsers, &p.Sudo, &p.CodeUID, &p.CodeGID, &p.Seccomp, &p.LandlockRead, &p.LandlockWrite)
	wire.List(c, &p.Rlimits, 2, func(c *wire.Coder, r *Rlimit) { c.Fields(&r.Resource, &r.Value) })
	c.Fields(&p.HideUptime, &p.Entering, &p.Adopt, &p.LandlockSpecial, &p.Process, &p.Notify, &p.WatchMemory, &p.WatchDisk, &p.SeccompTCP)
	wire.List(c, &p.Steps, 11, func(c *wire.Coder, s *Step) {
		c.Fields((*uint8)(&s.Op), &s.Path, &s.Source, &s.Options, &s.Data, &s.FD, &s.Mode, &s.UID, &s.GID, &s.Attr, &s.Optional)
	})
}

// valid reports whether a plan is within the limits.
func (p *Plan) valid() bool {
	long := func(s string) bool { return len(s) > maxString }
	many := func(all []string) bool { return len(all) > maxStrings || slices.ContainsFunc(all, long) }
	if long(p.Hostname) || long(p.Workdir) || long(p.StartDir) || long(p.Adopt) || many(p.LandlockRead) || many(p.LandlockWrite) || many(p.LandlockSpecial) ||
		len(p.Rlimits) > 64 || len(p.Steps) > maxSteps {
		return false
	}
	return !slices.ContainsFunc(p.Steps, func(s Step) bool {
		return s.Op < OpBind || s.Op > OpLayer || long(s.Path) || len(s.Path) == 0 || s.Path[0] != '/' || long(s.Source) || many(s.Options)
	})
}

// MaxReply is the largest reply of an agent, in bytes.
const MaxReply = 4 << 10

// A Reply is an agent's report of a setup that succeeded.
type Reply struct {
	// Exposed is how many OpBindHidden steps could not hide where their directory is from.
	Exposed uint32
	// StartDir reports whether the code can have Plan.StartDir as its working directory.
	StartDir bool
	Proc     Proc
}

// Fields names the fields in their order on the wire.
func (r *Reply) Fields(c *wire.Coder) { c.Fields(&r.Exposed, &r.StartDir, (*uint8)(&r.Proc)) }

const (
	replyReady  = 0
	replyFailed = 1
)

// encodeReply is what the agent answers once it is set up, or could not be.
func encodeReply(r Reply, err error) []byte {
	if err == nil {
		return wire.Append([]byte{replyReady}, &r)
	}
	b := append([]byte{replyFailed}, err.Error()...)
	return b[:min(len(b), MaxReply)]
}

// DecodeReply parses an agent's answer to a plan; it returns the agent's error when
// there was one.
func DecodeReply(b []byte) (Reply, error) {
	switch {
	case len(b) > 0 && b[0] == replyReady:
		var r Reply
		if rest, err := wire.Decode(b[1:], &r); err == nil && len(rest) == 0 && r.Exposed <= maxSteps && r.Proc <= ProcEmpty {
			return r, nil
		}
	case len(b) > 1 && len(b) <= MaxReply && b[0] == replyFailed:
		return Reply{}, errors.New(string(b[1:]))
	}
	return Reply{}, fmt.Errorf("malformed answer of %d bytes", len(b))
}
