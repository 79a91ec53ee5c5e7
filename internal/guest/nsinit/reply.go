package nsinit

import (
	"errors"
	"fmt"
)

// MaxReply is the largest reply of an agent, in bytes.
const MaxReply = 4 << 10

// A Reply is an agent's report of a setup that succeeded.
type Reply struct {
	// Exposed is how many OpVeil steps could not hide where their directory is from.
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
