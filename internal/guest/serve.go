//go:build linux

package guest

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
	"github.com/llmsandbox/llmsandbox/internal/guest/forward"
)

// helloPatience is how long a client that has connected may take to say hello.
const helloPatience = 30 * time.Second

// ServeConn serves one stream until it ends. Any number may be served at once.
// Processes live on when it ends. The client's hello may take as long as patience; 0
// is any time.
func (a *Agent) ServeConn(rwc io.ReadWriteCloser, patience time.Duration) error {
	a.streams.Add(1)
	defer a.streams.Done()
	return agentproto.Server(rwc, a.hello, patience, a)
}

// ServeListener accepts streams on a listening unix socket until accepting fails.
// Each is first given to admit, which may be nil, refuses it by an error, and
// returns what is called when the stream has ended. It waits for the streams to end.
func (a *Agent) ServeListener(fd int, admit func(*os.File) (leave func(), err error)) error {
	if err := unix.SetNonblock(fd, true); err != nil {
		return fmt.Errorf("prepare the listening socket: %w", err)
	}
	unix.CloseOnExec(fd)
	listener := os.NewFile(uintptr(fd), "listener")
	defer listener.Close()
	raw, err := listener.SyscallConn()
	if err != nil {
		return err
	}
	var streams sync.WaitGroup
	defer streams.Wait()
	for {
		conn, err := forward.Accept(raw, "stream")
		if err != nil {
			return fmt.Errorf("accept a stream: %w", err)
		}
		streams.Go(func() {
			if admit != nil {
				leave, err := admit(conn)
				if err != nil {
					conn.Close()
					return
				}
				defer leave()
			}
			// The client sees why its own stream ended.
			_ = a.ServeConn(conn, helloPatience)
		})
	}
}
