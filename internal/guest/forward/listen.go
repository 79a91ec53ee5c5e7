//go:build linux

package forward

import (
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

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
	l, err := s.listenOn(call, req.Port)
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
		var id uint64
		ok := l.reserved == nil || l.reserved.owns(conn)
		if ok {
			id, ok = s.conns.announce(l, conn)
		}
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

// A listener is a call that listens.
type listener struct {
	call *agentproto.Call
	port uint16
	file *os.File
	raw  syscall.RawConn
	// reserved is whose socket it is; nil: its own.
	reserved *Reserved
	// room has an element for each waiting connection.
	room chan struct{}
	// replaced is closed when another call listens on the port, gone when this one has
	// let go of it.
	replaced, gone chan struct{}
}

// listenOn makes a listener that the runtime's poller serves.
func (s *Service) listenOn(call *agentproto.Call, port uint16) (*listener, error) {
	l := &listener{call: call, port: port, room: make(chan struct{}, maxWaiting), replaced: make(chan struct{}), gone: make(chan struct{})}
	var fd int
	var err error
	if s.Reserved != nil && s.Reserved.port == port {
		l.reserved = s.Reserved
		fd, err = s.Reserved.listen()
	} else {
		fd, err = l.bind()
	}
	if err != nil {
		return nil, err
	}
	l.file = os.NewFile(uintptr(fd), "listener")
	if l.raw, err = l.file.SyscallConn(); err != nil {
		l.file.Close()
		return nil, err
	}
	return l, nil
}

// bind makes a listening socket on the listener's port, or on any if that is 0.
func (l *listener) bind() (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	// Connections of a listener before may still linger.
	err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	if err == nil {
		err = noDelay(fd) // connections inherit it
	}
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrInet4{Port: int(l.port), Addr: [4]byte{127, 0, 0, 1}})
	}
	if err == nil {
		err = unix.Listen(fd, backlog)
	}
	var name unix.Sockaddr
	if err == nil {
		name, err = unix.Getsockname(fd)
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	l.port, _ = portOf(name, nil)
	return fd, nil
}

// watch closes the listening socket when the call ends or another one takes the port
// over. Stop waits for what it stops.
func (l *listener) watch() (stop func()) {
	stopped := make(chan struct{})
	var watcher sync.WaitGroup
	watcher.Go(func() {
		select {
		case <-l.call.Done():
		case <-l.replaced:
		case <-stopped:
		}
		if l.reserved != nil {
			l.reserved.close()
		}
		l.file.Close()
	})
	return func() {
		close(stopped)
		watcher.Wait()
	}
}

// accept waits for room and then for a connection.
func (l *listener) accept() (*os.File, error) {
	select {
	case l.room <- struct{}{}:
	case <-l.replaced:
		return nil, os.ErrClosed
	case <-l.call.Done():
		return nil, os.ErrClosed
	}
	return Accept(l.raw, "connection")
}

// connections are those that came to the service's listeners.
type connections struct {
	mu        sync.Mutex
	listeners map[uint16]*listener
	lastID    uint64
	waiting   map[uint64]*waiting
	open      int // waiting or accepted
}

// waiting is a connection that the client has not accepted yet.
type waiting struct {
	conn   *os.File
	room   chan struct{} // its listener's
	expiry *time.Timer
}

// replace ends the listener of a port, if there is one, and waits until it has.
func (c *connections) replace(call *agentproto.Call, port uint16) {
	c.mu.Lock()
	old := c.listeners[port]
	delete(c.listeners, port)
	c.mu.Unlock()
	if old == nil {
		return
	}
	close(old.replaced)
	select {
	case <-old.gone:
	case <-call.Done():
	}
}

func (c *connections) add(l *listener) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.listeners == nil {
		c.listeners = map[uint16]*listener{}
	}
	c.listeners[l.port] = l
}

// remove lets go of a listener's port and closes the connections that wait.
func (c *connections) remove(l *listener) {
	c.mu.Lock()
	if c.listeners[l.port] == l {
		delete(c.listeners, l.port)
	}
	for id, w := range c.waiting {
		if w.room == l.room {
			c.drop(id, w)
		}
	}
	c.mu.Unlock()
	close(l.gone)
}

// announce registers a connection; ok means that there is room for it.
func (c *connections) announce(l *listener, conn *os.File) (id uint64, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open >= maxConnections {
		return 0, false
	}
	if c.waiting == nil {
		c.waiting = map[uint64]*waiting{}
	}
	c.open++
	c.lastID++
	id = c.lastID
	c.waiting[id] = &waiting{conn: conn, room: l.room, expiry: time.AfterFunc(acceptTime, func() { c.expire(id) })}
	return id, true
}

// expire closes a connection that the client has not accepted in time.
func (c *connections) expire(id uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w := c.waiting[id]; w != nil {
		c.drop(id, w)
	}
}

// drop closes a connection that waits. It is called with mu held.
func (c *connections) drop(id uint64, w *waiting) {
	delete(c.waiting, id)
	w.expiry.Stop()
	w.conn.Close()
	c.open--
	<-w.room
}

// take returns a connection for the client, or nil when it no longer waits.
func (c *connections) take(id uint64) *waiting {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.waiting[id]
	if w == nil {
		return nil
	}
	delete(c.waiting, id)
	w.expiry.Stop()
	<-w.room
	return w
}

// closed reports whether an accepted connection has ended.
func (c *connections) closed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open--
}

// pause is how long accepting rests when a limit of descriptors or memory is reached.
const pause = 50 * time.Millisecond

// Accept waits for a connection to a listening socket as long as it takes, whatever the kernel
// is short of. The socket must be non-blocking: the runtime's poller waits. It fails when the socket is closed, or is no listening one; the file it
// returns has that name.
func Accept(socket syscall.RawConn, name string) (*os.File, error) {
	for {
		conn, failed := -1, error(nil)
		err := socket.Read(func(fd uintptr) bool {
			conn, _, failed = unix.Accept4(int(fd), unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
			return failed != unix.EAGAIN
		})
		switch {
		case err != nil:
			return nil, err
		case failed == unix.EINTR, failed == unix.ECONNABORTED:
		case failed == unix.EMFILE, failed == unix.ENFILE, failed == unix.ENOBUFS, failed == unix.ENOMEM:
			// No event reports when there is room again, and giving up would make the
			// sandbox unreachable.
			time.Sleep(pause)
		case failed != nil:
			return nil, failed
		default:
			return os.NewFile(uintptr(conn), name), nil
		}
	}
}
