//go:build linux

package files

import "github.com/llmsandbox/llmsandbox/internal/agentproto"

// turns are taken to work on files, first come, first served: there are
// [agentproto.MaxAtWork].
type turns chan struct{}

func newTurns() turns { return make(turns, agentproto.MaxAtWork) }

func (t turns) take() { t <- struct{}{} }
func (t turns) give() { <-t }

// yield lets others have a turn, where there are more than fit.
func (t turns) yield() {
	t.give()
	t.take()
}

// A job is a call that works on files. It has its turn, but while it waits for its
// client, who may be slow or not read at all.
type job struct {
	*agentproto.Call
	turns turns
}

// begin waits for a job's turn; ok means that it came before the call ended.
func (t turns) begin(call *agentproto.Call) (j *job, ok bool) {
	select {
	case t <- struct{}{}:
		return &job{Call: call, turns: t}, true
	case <-call.Done():
		return nil, false
	}
}

// away gives the turn up until back is called.
func (j *job) away() (back func()) {
	j.turns.give()
	return j.turns.take
}

// Read is the call's.
func (j *job) Read(ch agentproto.Channel, p []byte) (int, error) {
	defer j.away()()
	return j.Call.Read(ch, p)
}

// Write is the call's.
func (j *job) Write(ch agentproto.Channel, p []byte) (int, error) {
	defer j.away()()
	return j.Call.Write(ch, p)
}

// CloseWrite is the call's.
func (j *job) CloseWrite(ch agentproto.Channel) error {
	defer j.away()()
	return j.Call.CloseWrite(ch)
}

// Send is the call's.
func (j *job) Send(m agentproto.Message) error {
	defer j.away()()
	return j.Call.Send(m)
}

// End is the call's.
func (j *job) End(m agentproto.Message) error {
	defer j.away()()
	return j.Call.End(m)
}
