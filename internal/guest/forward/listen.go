//go:build linux

package forward

import (
	"time"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

const (
	// maxWaiting bounds the connections of one listener that were announced and not yet
	// accepted by the client. Further ones wait in the kernel.
	maxWaiting = 64
	// maxConnections bounds the connections of all listeners, accepted ones included.
	// One more is closed at once: each costs memory at both ends of the stream.
	maxConnections = 256
	// backlog is how many wait in the kernel. A client that connects when these are used up
	// waits for a second before the kernel tries again.
	backlog = 1024
	// acceptTime is how long the client may take to accept a connection.
	acceptTime = 30 * time.Second
)

// ServeListen listens on a port of the loopback until the call ends, and announces each
// connection. A port that another call listens on is taken over from it.
func (s *Service) ServeListen(call *agentproto.Call) error {
	var req agentproto.ListenRequest
	if err := call.Request(&req); err != nil {
		return err
	}
	s.conns.replace(call, req.Port)
	l, err := listenOn(call, req.Port)
	if err != nil {
		return agentproto.Errorf(codeOf(err), "listen on port %d of the sandbox's loopback: %v", req.Port, err)
	}
	s.conns.add(l)
	defer s.conns.remove(l)
	defer l.watch()()
	if err := call.Send(&agentproto.Listening{Port: l.port}); err != nil {
		return err
	}
	for {
		conn, err := l.accept()
		select {
		case <-l.replaced:
			return agentproto.Errorf(agentproto.CodeBusy, "another call listens on port %d", l.port)
		default:
		}
		if err != nil {
			return agentproto.Errorf(agentproto.CodeCancelled, "listening on port %d has ended: %v", l.port, err)
		}
		id, ok := s.conns.announce(l, conn)
		if !ok {
			conn.Close()
			<-l.room
			continue
		}
		if err := call.Send(&agentproto.Connection{ID: id}); err != nil {
			return err
		}
	}
}

// ServeAccept carries the bytes of a connection that was announced.
func (s *Service) ServeAccept(call *agentproto.Call) error {
	var req agentproto.AcceptRequest
	if err := call.Request(&req); err != nil {
		return err
	}
	w := s.conns.take(req.ID)
	if w == nil {
		return agentproto.Errorf(agentproto.CodeNotFound, "connection %d does not wait to be accepted: it was closed", req.ID)
	}
	defer s.conns.closed()
	if err := call.Send(&agentproto.Empty{}); err != nil {
		w.conn.Close()
		return err
	}
	if err := tunnel(call, w.conn); err != nil {
		return err
	}
	return call.End(&agentproto.Empty{})
}
