//go:build linux

package guest_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// stuckFS is a file system (FUSE) that lets every process wait that uses it, as a
// volume does whose server is away.
type stuckFS struct {
	dir     string
	waiting chan struct{} // one for each question that waits
	release func()        // answers all, now and later: there is no such file; to be called
}

// What is used of the kernel's FUSE protocol (include/uapi/linux/fuse.h).
const (
	fuseInit                 = 26
	fuseForget, fuseForgets  = 2, 42 // which are not answered
	fuseInterrupt            = 36
	fuseInHeader             = 40
	fuseOutHeader            = 16
	fuseInitOut              = 64
	fuseMajor, fuseMinor     = 7, 31
	fuseBuffer               = 1 << 17
	fuseUnique, fuseOpcode   = 8, 4
	fuseMaxWrite, fuseOutErr = fuseOutHeader + 20, 4
)

// mountStuck mounts one for the time of a test.
func mountStuck(t *testing.T) *stuckFS {
	t.Helper()
	dev, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		need(t, fmt.Sprintf("no file system can be made to wait: %v", err))
	}
	dir, err := os.MkdirTemp("", "stuck")
	if err != nil {
		t.Fatal(err)
	}
	options := fmt.Sprintf("fd=%d,rootmode=40755,user_id=0,group_id=0,allow_other", dev)
	if err := unix.Mount("stuck", dir, "fuse", unix.MS_NODEV|unix.MS_NOSUID, options); err != nil {
		unix.Close(dev)
		os.Remove(dir)
		need(t, fmt.Sprintf("no file system can be made to wait: %v", err))
	}
	released, ended := make(chan struct{}), make(chan struct{})
	s := &stuckFS{dir: dir, waiting: make(chan struct{}, 1000), release: sync.OnceFunc(func() { close(released) })}
	go func() {
		defer close(ended)
		s.serve(dev, released)
	}()
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
		<-ended
		unix.Close(dev)
		os.Remove(dir)
	})
	return s
}

func (s *stuckFS) serve(dev int, released <-chan struct{}) {
	buf := make([]byte, fuseBuffer)
	for {
		n, err := unix.Read(dev, buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n < fuseInHeader {
			return // unmounted
		}
		unique := binary.NativeEndian.Uint64(buf[fuseUnique:])
		switch binary.NativeEndian.Uint32(buf[fuseOpcode:]) {
		case fuseInit:
			out := make([]byte, fuseOutHeader+fuseInitOut)
			binary.NativeEndian.PutUint32(out[fuseOutHeader:], fuseMajor)
			binary.NativeEndian.PutUint32(out[fuseOutHeader+4:], fuseMinor)
			binary.NativeEndian.PutUint32(out[fuseMaxWrite:], 4096)
			answer(dev, out, unique)
		case fuseForget, fuseForgets, fuseInterrupt:
		default:
			s.waiting <- struct{}{}
			go func() {
				<-released
				out := make([]byte, fuseOutHeader)
				errno := -int32(unix.ENOENT)
				binary.NativeEndian.PutUint32(out[fuseOutErr:], uint32(errno))
				answer(dev, out, unique)
			}()
		}
	}
}

func answer(dev int, out []byte, unique uint64) {
	binary.NativeEndian.PutUint32(out, uint32(len(out)))
	binary.NativeEndian.PutUint64(out[fuseUnique:], unique)
	_, _ = unix.Write(dev, out) // an error: the file system is unmounted, and no process waits
}
