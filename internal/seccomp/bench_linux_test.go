package seccomp

import (
	"runtime"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// BenchmarkLoad times what the kernel takes to check, compile and install the
// filter, which every process that is started pays. Each load is on a thread of
// its own, which ends with it.
func BenchmarkLoad(b *testing.B) {
	raw, err := Filter(runtime.GOARCH)
	if err != nil {
		b.Skip(err)
	}
	b.StopTimer()
	for range b.N {
		done := make(chan error)
		go func() {
			runtime.LockOSThread() // never unlocked: the thread dies with its filter
			if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
				done <- err
				return
			}
			prog := unix.SockFprog{Len: uint16(len(raw) / 8), Filter: (*unix.SockFilter)(unsafe.Pointer(&raw[0]))}
			b.StartTimer()
			_, _, e := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog)))
			b.StopTimer()
			if e != 0 {
				done <- e
				return
			}
			done <- nil
		}()
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
}
