//go:build linux

package guest

import "github.com/llmsandbox/llmsandbox/internal/agentproto"

// serveLogs sends what is kept of a process's stdout and stderr. The process goes on meanwhile,
// and so does its collection: the call holds no more of the output than one piece.
func (a *Agent) serveLogs(call *agentproto.Call) error {
	var req agentproto.LogsRequest
	if err := call.Request(&req); err != nil {
		return err
	}
	p, err := a.find(req.ID)
	if err != nil {
		return err
	}
	offsets := [2]uint64{req.OutOffset, req.ErrOffset}
	var ends [2]uint64
	for i := range offsets {
		if _, ends[i] = p.outputs[i].bounds(); offsets[i] > ends[i] {
			return agentproto.Errorf(agentproto.CodeBadRequest, "offset %d is beyond the end of what process %d has written to %s, which is %d",
				offsets[i], p.id, [2]string{"stdout", "stderr"}[i], ends[i])
		}
	}
	for exited := (<-chan struct{})(p.exited); ; {
		var news [2]<-chan struct{} // stays nil for what has ended
		sent := false
		for i, o := range p.outputs[:2] {
			if o == nil || !req.Follow && offsets[i] >= ends[i] {
				continue
			}
			var part agentproto.Output
			if part.Offset, part.Data, news[i] = o.peek(offsets[i]); len(part.Data) == 0 {
				continue
			}
			part.Err = i == 1
			if err := call.Send(&part); err != nil {
				return err
			}
			offsets[i] = part.Offset + uint64(len(part.Data))
			sent = true
		}
		switch {
		case sent:
			continue
		case !req.Follow || exited == nil && news[0] == nil && news[1] == nil:
			return call.End(&agentproto.Output{})
		}
		select {
		case <-news[0]:
		case <-news[1]:
		case <-exited:
			exited = nil
		case <-call.Done():
			return agentproto.ErrCallEnded
		}
	}
}

// peek returns a copy of the first piece that is kept from offset off on, and where it begins.
// Without one, news is closed once there is more; it is nil if there will be none.
func (o *output) peek(off uint64) (at uint64, part []byte, news <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	at = max(off, o.ring.first)
	if part = o.ring.next(at); len(part) > 0 {
		return at, append([]byte(nil), part[:min(len(part), agentproto.MaxLogs)]...), nil
	}
	if o.closed {
		return at, nil, nil
	}
	if o.news == nil {
		o.news = make(chan struct{})
	}
	return at, nil, o.news
}
