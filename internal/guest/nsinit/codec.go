package nsinit

import (
	"encoding/binary"
	"errors"
	"fmt"
)

var errPlan = errors.New("malformed set-up plan")

// Encode returns the plan as Setup reads it, or an error when it exceeds what an
// agent accepts.
func (p *Plan) Encode() ([]byte, error) {
	e := encoder{b: make([]byte, 0, 16<<10)}
	e.string(p.Hostname)
	e.string(p.Workdir)
	e.string(p.StartDir)
	e.bool(p.SetIDs)
	e.u32(p.CodeUID)
	e.u32(p.CodeGID)
	e.bytes(p.Seccomp)
	e.strings(p.LandlockRead)
	e.strings(p.LandlockWrite)
	e.u32(uint32(len(p.Rlimits)))
	for _, r := range p.Rlimits {
		e.u32(r.Resource)
		e.u64(r.Value)
	}
	e.bool(p.HideUptime)
	e.u32(uint32(len(p.Steps)))
	for i := range p.Steps {
		e.step(&p.Steps[i])
	}
	// One decoder decides what is acceptable, so the host learns of a plan that is
	// too large here and not from an agent that gave up.
	if _, err := Decode(e.b); err != nil {
		return nil, fmt.Errorf("encode set-up plan of %d steps, %d bytes: %w", len(p.Steps), len(e.b), err)
	}
	return e.b, nil
}

// Decode parses an encoded plan.
func Decode(b []byte) (*Plan, error) {
	if len(b) > maxPlan {
		return nil, fmt.Errorf("%w: %d bytes are more than %d", errPlan, len(b), maxPlan)
	}
	d := decoder{b: b}
	p := &Plan{Hostname: d.string(), Workdir: d.string(), StartDir: d.string(), SetIDs: d.bool(), CodeUID: d.u32(), CodeGID: d.u32()}
	p.Seccomp = d.bytes()
	p.LandlockRead = d.strings()
	p.LandlockWrite = d.strings()
	for range d.count(64) {
		p.Rlimits = append(p.Rlimits, Rlimit{Resource: d.u32(), Value: d.u64()})
	}
	p.HideUptime = d.bool()
	for range d.count(maxSteps) {
		p.Steps = append(p.Steps, d.step())
	}
	if d.failed || len(d.b) != 0 {
		return nil, errPlan
	}
	return p, nil
}

type encoder struct{ b []byte }

func (e *encoder) u32(v uint32) { e.b = binary.LittleEndian.AppendUint32(e.b, v) }
func (e *encoder) u64(v uint64) { e.b = binary.LittleEndian.AppendUint64(e.b, v) }

func (e *encoder) bool(v bool) {
	if v {
		e.b = append(e.b, 1)
	} else {
		e.b = append(e.b, 0)
	}
}

func (e *encoder) bytes(v []byte) {
	e.u32(uint32(len(v)))
	e.b = append(e.b, v...)
}

func (e *encoder) string(v string) {
	e.u32(uint32(len(v)))
	e.b = append(e.b, v...)
}

func (e *encoder) strings(v []string) {
	e.u32(uint32(len(v)))
	for _, s := range v {
		e.string(s)
	}
}

func (e *encoder) step(s *Step) {
	e.b = append(e.b, byte(s.Op))
	e.string(s.Path)
	e.string(s.Source)
	e.strings(s.Options)
	e.bytes(s.Data)
	e.u32(s.FD)
	e.u32(s.Mode)
	e.u32(s.UID)
	e.u32(s.GID)
	e.u32(s.Attr)
	e.bool(s.Optional)
}

// A decoder reads values off b; after the first that is not there, it has failed and
// everything else is zero.
type decoder struct {
	b      []byte
	failed bool
}

func (d *decoder) take(n uint64) []byte {
	if d.failed || n > uint64(len(d.b)) {
		d.failed = true
		return nil
	}
	v := d.b[:n]
	d.b = d.b[n:]
	return v
}

func (d *decoder) u8() byte {
	if v := d.take(1); v != nil {
		return v[0]
	}
	return 0
}

func (d *decoder) u32() uint32 {
	if v := d.take(4); v != nil {
		return binary.LittleEndian.Uint32(v)
	}
	return 0
}

func (d *decoder) u64() uint64 {
	if v := d.take(8); v != nil {
		return binary.LittleEndian.Uint64(v)
	}
	return 0
}

func (d *decoder) bool() bool {
	v := d.u8()
	if v > 1 {
		d.failed = true
	}
	return v == 1
}

func (d *decoder) bytes() []byte { return d.take(uint64(d.u32())) }

func (d *decoder) string() string {
	n := d.u32()
	if n > maxString {
		d.failed = true
		return ""
	}
	return string(d.take(uint64(n)))
}

// count reads a number of elements, at most limit; a failed decoder has none.
func (d *decoder) count(limit uint32) uint32 {
	n := d.u32()
	if n > limit {
		d.failed = true
	}
	if d.failed {
		return 0
	}
	return n
}

func (d *decoder) strings() []string {
	n := d.count(maxStrings)
	var v []string
	for range n {
		v = append(v, d.string())
	}
	return v
}

func (d *decoder) step() Step {
	s := Step{Op: Op(d.u8()), Path: d.string(), Source: d.string(), Options: d.strings(), Data: d.bytes(),
		FD: d.u32(), Mode: d.u32(), UID: d.u32(), GID: d.u32(), Attr: d.u32(), Optional: d.bool()}
	if s.Op < OpBind || s.Op > OpOwnDirectories || len(s.Path) == 0 || s.Path[0] != '/' {
		d.failed = true
	}
	return s
}

// MaxReply is the largest reply of an agent, in bytes.
const MaxReply = 4 << 10

// A Reply is an agent's report of a setup that succeeded.
type Reply struct {
	// Exposed is how many OpBindHidden steps could not hide where their directory is from.
	Exposed int
	// StartDir reports whether the code can have Plan.StartDir as its working directory.
	StartDir bool
}

const (
	replyReady  = 0
	replyFailed = 1
)

// encodeReply is what the agent answers once it is set up, or could not be.
func encodeReply(r Reply, err error) []byte {
	if err == nil {
		e := encoder{b: []byte{replyReady}}
		e.u32(uint32(r.Exposed))
		e.bool(r.StartDir)
		return e.b
	}
	b := append([]byte{replyFailed}, err.Error()...)
	return b[:min(len(b), MaxReply)]
}

// DecodeReply parses an agent's answer to a plan; it returns the agent's error when
// there was one.
func DecodeReply(b []byte) (Reply, error) {
	switch {
	case len(b) > 0 && b[0] == replyReady:
		d := decoder{b: b[1:]}
		r := Reply{Exposed: int(d.count(maxSteps)), StartDir: d.bool()}
		if !d.failed && len(d.b) == 0 {
			return r, nil
		}
	case len(b) > 1 && len(b) <= MaxReply && b[0] == replyFailed:
		return Reply{}, errors.New(string(b[1:]))
	}
	return Reply{}, fmt.Errorf("malformed answer of %d bytes", len(b))
}
