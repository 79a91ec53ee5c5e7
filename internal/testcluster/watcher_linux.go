package testcluster

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// A watcher is a process that ends the cluster when this one ends, however it ends: its
// input is closed then. Until it is done it holds the lock that other test binaries wait for.
type watcher struct {
	cmd *exec.Cmd
	in  io.Closer
	log string
}

// takeTurn waits until no other test binary has the cluster, and makes sure that it ends
// with this one.
func (k kit) takeTurn() (*watcher, error) {
	if err := os.MkdirAll(k.cache, 0o700); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(k.cache, "turn."+name), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock of the test cluster: %w", err)
	}
	// The watcher has the lock too, and alone from here on.
	defer lock.Close()
	err = unix.EINTR
	for errors.Is(err, unix.EINTR) {
		err = unix.Flock(int(lock.Fd()), unix.LOCK_EX)
	}
	if err != nil {
		return nil, fmt.Errorf("lock of the test cluster: %w", err)
	}
	// Not this process's own output: go test waits until no process has that open.
	log, err := os.Create(filepath.Join(k.cache, "down."+name+".log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	// The descriptor of the lock must not get into what down starts.
	cmd := exec.Command("/bin/sh", "-c", `cat >/dev/null; "$1" 3>&-`, "sh", filepath.Join(k.programs, "down"))
	cmd.Dir, cmd.Env = "/", k.env()
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = log, log, []*os.File{lock}
	// A terminal's interrupt is for the tests.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start what ends the test cluster: %w", err), in.Close())
	}
	return &watcher{cmd: cmd, in: in, log: log.Name()}, nil
}

// end ends the cluster now, and returns when nothing of it is left.
func (w *watcher) end() error {
	err := w.in.Close()
	if ended := w.cmd.Wait(); ended != nil {
		said, rerr := os.ReadFile(w.log)
		err = errors.Join(err, fmt.Errorf("end the test cluster: %w\n%s", ended, said), rerr)
	}
	return err
}
