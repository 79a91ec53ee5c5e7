package warm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A Sandbox is what [Keep] needs of one.
type Sandbox interface {
	ID() string
	Done() <-chan struct{}
	Close() error
}

// Start starts a program that calls [Keep], apart from this process and its terminal, with an order as its standard
// input, unless so many sandboxes wait for the key already or one is being opened. It does not wait.
func Start(key string, number int, command []string, order any) error {
	_, lock, err := begin(key, number)
	if lock == nil || err != nil {
		return err
	}
	_ = lock.Close() // the program takes it again
	text, err := json.Marshal(order)
	if err != nil {
		return err
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	_, err = stdin.Write(text)
	return errors.Join(err, stdin.Close(), cmd.Process.Release())
}

// Keep opens a sandbox and has it wait for a run with the key; when a run has had it, the next one. It returns when
// none has come for so long, the sandbox has ended by itself, other processes have so many waiting, or ctx ends.
func Keep(ctx context.Context, key string, number int, idle time.Duration, open func(context.Context) (Sandbox, error)) error {
	ended := make(chan error)
	ending := 0
	var errs []error
	for again := true; again; {
		var s Sandbox
		var err error
		again, s, err = keep(ctx, key, number, idle, open)
		errs = append(errs, err)
		if s != nil { // beside the opening of the next one
			ending++
			go func() { ended <- s.Close() }()
		}
	}
	for range ending {
		errs = append(errs, <-ended)
	}
	return errors.Join(errs...)
}

// keep returns the sandbox once it is to be closed; served tells that a run has had it.
func keep(ctx context.Context, key string, number int, idle time.Duration, open func(context.Context) (Sandbox, error)) (served bool, s Sandbox, err error) {
	d, lock, err := begin(key, number)
	if lock == nil || err != nil {
		return false, nil, err
	}
	defer lock.Close() // again, where it has been closed
	if err := makeRoom(); err != nil {
		return false, nil, err
	}
	if s, err = open(ctx); err != nil {
		return false, nil, err
	}
	offered, taken := filepath.Join(d, key+"."+s.ID()), filepath.Join(d, takenPrefix+s.ID())
	fifo, err := offer(offered)
	if err != nil {
		return false, s, err
	}
	defer fifo.Close()
	_ = lock.Close() // which gives it up
	left := make(chan error, 1)
	go func() { left <- awaitHolder(fifo) }()
	timer := time.NewTimer(idle)
	defer timer.Stop()
	done := s.Done()
	for {
		select {
		case err := <-left:
			_ = os.Remove(offered) // of a run that ended before it had the sandbox
			// The file of one that had to make room has been removed.
			return os.Remove(taken) == nil, s, err
		case <-timer.C:
		case <-done:
			done = nil
		case <-ctx.Done():
			return false, s, errors.Join(os.RemoveAll(offered), os.RemoveAll(taken))
		}
		if err := os.Remove(offered); !errors.Is(err, fs.ErrNotExist) {
			return false, s, err
		} // else a run has it, whose end comes
	}
}

// begin returns the lock with which a sandbox may be opened for a key; nil: another process opens one, or so many
// wait.
func begin(key string, number int) (d string, lock *os.File, err error) {
	if d, err = dir(); err != nil {
		return d, nil, err
	}
	if lock, err = tryLock(d); lock == nil || err != nil {
		return d, nil, err
	}
	_, err = collect(d)
	_, names, listed := waiting()
	for _, name := range names {
		if strings.HasPrefix(name, key+".") {
			number--
		}
	}
	if err = errors.Join(err, listed); err != nil || number <= 0 {
		return d, nil, errors.Join(err, lock.Close())
	}
	return d, lock, nil
}

// makeRoom ends the sandboxes that have waited longest, where there are too many.
func makeRoom() error {
	d, names, err := waiting()
	if err != nil || len(names) < Most {
		return err
	}
	since := map[string]time.Time{}
	for _, name := range names {
		if info, err := os.Lstat(filepath.Join(d, name)); err == nil { // else it has just gone
			since[name] = info.ModTime()
		}
	}
	slices.SortFunc(names, func(a, b string) int { return since[a].Compare(since[b]) })
	for _, name := range names[:len(names)-Most+1] {
		hold, err := take(d, name)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENXIO) {
			continue
		}
		if err != nil {
			return err
		}
		_, id, _ := parse(name)
		if err := errors.Join(os.Remove(filepath.Join(d, takenPrefix+id)), hold.Close()); err != nil {
			return err
		}
	}
	return nil
}

// offer makes a FIFO that says that its owner lives and waits.
func offer(path string) (*os.File, error) {
	temp := path + ".new" // which parse takes for none
	if err := unix.Mkfifo(temp, 0o600); err != nil {
		return nil, fmt.Errorf("make %s: %w", temp, err)
	}
	fifo, err := os.OpenFile(temp, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, errors.Join(err, os.Remove(temp))
	}
	var refused error
	conn, err := fifo.SyscallConn()
	if err == nil {
		err = conn.Control(func(fd uintptr) { refused = unix.Flock(int(fd), unix.LOCK_EX|unix.LOCK_NB) })
	}
	if err = errors.Join(err, refused); err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		return nil, errors.Join(err, fifo.Close(), os.Remove(temp))
	}
	return fifo, nil
}

// awaitHolder returns when whoever has had the FIFO open for writing no longer has.
func awaitHolder(fifo *os.File) error {
	conn, err := fifo.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = conn.Read(func(fd uintptr) bool {
		// The kernel tells of a hangup only once someone has had it open.
		p := []unix.PollFd{{Fd: int32(fd)}}
		n, err := unix.Poll(p, 0)
		if err != nil && !errors.Is(err, unix.EINTR) {
			failed = err
			return true
		}
		return n > 0
	})
	return errors.Join(err, failed)
}
