//go:build linux

package guest

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// TestPeerByName opens a terminal's other end as on kernels that cannot do it from the
// first: what is written to one arrives at the other, whose reads wait.
func TestPeerByName(t *testing.T) {
	master, slave, err := openPTY(agentproto.WinSize{Rows: 24, Cols: 80})
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	defer unix.Close(slave)
	raw, err := master.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	peer := -1
	if cerr := raw.Control(func(fd uintptr) { peer, err = peerByName(int(fd)) }); cerr != nil || err != nil {
		t.Fatalf("cerr = %v, err = %v, want no error", cerr, err)
	}
	defer unix.Close(peer)
	var one, other unix.Stat_t
	if err := unix.Fstat(slave, &one); err != nil {
		t.Fatal(err)
	}
	if err := unix.Fstat(peer, &other); err != nil {
		t.Fatal(err)
	}
	if one.Rdev != other.Rdev {
		t.Errorf("device %d, want %d", other.Rdev, one.Rdev)
	}
	if flags, err := unix.FcntlInt(uintptr(peer), unix.F_GETFL, 0); err != nil || flags&unix.O_NONBLOCK != 0 {
		t.Errorf("flags %#o, %v: reads must wait, want no error, O_NONBLOCK = 0", flags, err)
	}
	if _, err := unix.Write(peer, []byte("x")); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 8)
	if n, err := master.Read(buf); err != nil || string(buf[:n]) != "x" {
		t.Errorf("%q, %v, want no error, buf[:n] = \"x\"", buf[:n], err)
	}
}
