//go:build linux

package guest

import (
	"errors"
	"io"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// openPTY opens a new terminal of the sandbox's own devpts.
func openPTY(size agentproto.WinSize) (master *os.File, slave int, err error) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, -1, agentproto.Errorf(agentproto.CodeUnsupported, "open a terminal (/dev/ptmx): %v", err)
	}
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		unix.Close(fd)
		return nil, -1, agentproto.Errorf(agentproto.CodeInternal, "unlock the terminal: %v", err)
	}
	if slave, err = terminalPeer(fd); err != nil {
		unix.Close(fd)
		return nil, -1, agentproto.Errorf(agentproto.CodeUnsupported, "open the program's end of the terminal: %v", err)
	}
	master = os.NewFile(uintptr(fd), "pty")
	if err := setSize(fd, size); err != nil {
		master.Close()
		unix.Close(slave)
		return nil, -1, err
	}
	return master, slave, nil
}

const peerFlags = unix.O_RDWR | unix.O_NOCTTY | unix.O_CLOEXEC

func terminalPeer(master int) (int, error) {
	fd, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(master), unix.TIOCGPTPEER, peerFlags)
	switch errno {
	case 0:
		return int(fd), nil
	case unix.ENOTTY, unix.EINVAL:
		return peerByName(master) // no such request: gVisor, and kernels before 4.13
	}
	return -1, errno
}

// peerByName opens the program's end by its number in /dev/pts, and makes sure that
// this is what is there.
func peerByName(master int) (int, error) {
	n, err := unix.IoctlGetInt(master, unix.TIOCGPTN)
	if err != nil {
		return -1, err
	}
	fd, err := unix.Open("/dev/pts/"+strconv.Itoa(n), peerFlags|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return -1, err
	}
	var fs unix.Statfs_t
	var st unix.Stat_t
	if err = unix.Fstatfs(fd, &fs); err == nil {
		err = unix.Fstat(fd, &st)
	}
	if err == nil && (fs.Type != unix.DEVPTS_SUPER_MAGIC || unix.Minor(st.Rdev) != uint32(n)) {
		err = unix.ENOTTY
	}
	if err == nil {
		err = unix.SetNonblock(fd, false) // the program's own reads wait
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

func setSize(fd int, size agentproto.WinSize) error {
	ws := &unix.Winsize{Row: size.Rows, Col: size.Cols}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, ws); err != nil {
		return agentproto.Errorf(agentproto.CodeInternal, "set the terminal's size: %v", err)
	}
	return nil
}

func (p *process) resize(size agentproto.WinSize) error {
	if !p.tty {
		return agentproto.Errorf(agentproto.CodeBadRequest, "process %d has no terminal to resize", p.id)
	}
	var err error
	if cerr := p.outputs[0].raw.Control(func(fd uintptr) { err = setSize(int(fd), size) }); cerr != nil {
		return agentproto.Errorf(agentproto.CodeNotFound, "process %d has ended", p.id)
	}
	return err
}

// endStdin signals to the program that its input has ended: a pipe is closed, on a
// terminal the end-of-file character is typed if the program reads lines.
func (p *process) endStdin() {
	p.feeding.Lock()
	defer p.feeding.Unlock()
	if !p.tty {
		_ = p.stdin.Close() // it may be closed already, because the process ended
		return
	}
	_ = p.outputs[0].raw.Control(func(fd uintptr) { // an error: the process has ended
		t, err := unix.IoctlGetTermios(int(fd), unix.TCGETS)
		if err == nil && t.Lflag&unix.ICANON != 0 {
			_, _ = unix.Write(int(fd), []byte{t.Cc[unix.VEOF]})
		}
	})
}

func isEOF(err error) bool { return errors.Is(err, io.EOF) }
