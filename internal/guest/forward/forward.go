//go:build linux

// Package forward serves the calls of the agent protocol that forward TCP connections
// between a client and the sandbox's own loopback, in both directions.
package forward

import (
	"errors"
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// A Service serves calls about connections. Its zero value is ready, and its methods may
// be called concurrently.
type Service struct{ conns connections }

// closeWith closes a connection when its call ends, until stop is called. Stop waits
// for what it stops.
func closeWith(call *agentproto.Call, conn *os.File) (stop func()) {
	stopped := make(chan struct{})
	var watcher sync.WaitGroup
	watcher.Go(func() {
		select {
		case <-call.Done():
			conn.Close()
		case <-stopped:
		}
	})
	return func() {
		close(stopped)
		watcher.Wait()
	}
}

// tunnel copies in both directions until both have ended, the connection is broken or the
// call has ended. A server that has closed its end looks like one that has only
// ended what it sends: the way to it stays open until the caller ends it, or its
// kernel refuses what comes.
func tunnel(call *agentproto.Call, conn *os.File) error {
	defer conn.Close()
	defer closeWith(call, conn)()
	received := make(chan error, 1)
	go func() {
		_, err := io.CopyBuffer(output{call}, onlyReader{conn}, make([]byte, 32<<10))
		if err == nil {
			err = call.CloseWrite(agentproto.ChanOut)
		} else {
			err = agentproto.Errorf(codeOf(err), "the connection inside the sandbox broke: %v", err)
			// Wakes the other direction. It fails when the call has ended already.
			_ = call.Fail(agentproto.Errorf(agentproto.CodeInternal, "%v", err))
		}
		received <- err
	}()
	_, err := io.CopyBuffer(onlyWriter{conn}, input{call}, make([]byte, 32<<10))
	if err == nil {
		if raw, rawErr := conn.SyscallConn(); rawErr == nil {
			_ = raw.Control(func(fd uintptr) { _ = unix.Shutdown(int(fd), unix.SHUT_WR) })
		}
	}
	// A server that takes no more may have answered before: that still comes.
	return <-received
}

// codeOf is what a client is answered with when the kernel refuses a connection or a port.
func codeOf(err error) agentproto.ErrorCode {
	var errno unix.Errno
	errors.As(err, &errno)
	switch errno {
	case unix.EACCES, unix.EPERM:
		return agentproto.CodePermission
	case unix.EMFILE, unix.ENFILE, unix.EAGAIN, unix.EADDRINUSE:
		return agentproto.CodeBusy
	}
	return agentproto.CodeInternal
}

// input and output are a call's byte channels.
type input struct{ call *agentproto.Call }

func (i input) Read(p []byte) (int, error) { return i.call.Read(agentproto.ChanIn, p) }

type output struct{ call *agentproto.Call }

func (o output) Write(p []byte) (int, error) { return o.call.Write(agentproto.ChanOut, p) }

// onlyReader and onlyWriter hide what would make io.CopyBuffer leave its buffer aside.
type onlyReader struct{ io.Reader }
type onlyWriter struct{ io.Writer }
