package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// A Started is a supervisor whose sandbox is open. It is to be ended or released.
type Started struct {
	ID      string // the sandbox's
	cmd     *exec.Cmd
	answers io.Closer
}

// End has the supervisor end its sandbox, and waits until it has.
func (s *Started) End() error {
	_ = s.cmd.Process.Signal(syscall.SIGTERM) // it may just have ended
	return ignoreExit(s.cmd.Wait())
}

// Release lets the supervisor go on.
func (s *Started) Release() error { return errors.Join(s.answers.Close(), s.cmd.Process.Release()) }

// Start runs a supervisor's command apart from this process's terminal, gives it an order, and
// returns once its sandbox is open. progress gets what it says until then. What fails in the
// supervisor is an [Error].
func Start(ctx context.Context, command []string, order any, progress func(json.RawMessage)) (started *Started, err error) {
	defer func() {
		if told := new(Error); err != nil && !errors.As(err, &told) {
			err = fmt.Errorf("start the sandbox's supervisor %s: %w", command[0], err)
		}
	}()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Stderr = os.Stderr // until it lets go of it
	text, err := json.Marshal(order)
	if err != nil {
		return nil, err
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(syscall.SIGTERM) }) // it may just have ended
	defer stop()
	_, err = stdin.Write(text)
	if err = errors.Join(err, stdin.Close()); err != nil {
		return nil, errors.Join(err, cmd.Wait())
	}
	answers := json.NewDecoder(stdout)
	for {
		var a Answer
		err := answers.Decode(&a)
		switch {
		case ctx.Err() != nil:
			return nil, errors.Join(context.Cause(ctx), ignoreExit(cmd.Wait()))
		case err != nil:
			return nil, errors.Join(fmt.Errorf("it ended without an answer: %w", err), cmd.Wait())
		case a.Error != nil:
			return nil, errors.Join(a.Error, ignoreExit(cmd.Wait()))
		case a.ID != "":
			return &Started{a.ID, cmd, stdout}, nil
		}
		progress(a.Progress)
	}
}

func ignoreExit(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil // it said why in its answer
	}
	return err
}

// Order reads the order that Start gives.
func Order(order any) error {
	if err := json.NewDecoder(os.Stdin).Decode(order); err != nil {
		return fmt.Errorf("read the order: %w", err)
	}
	return nil
}

// Say writes an answer.
func Say(a Answer) {
	// The process that asked may be gone, and needs no answer then.
	_ = json.NewEncoder(os.Stdout).Encode(a)
}

// LetGo gives up the standard streams, so that what waits for their end (a shell's command
// substitution) does not wait for the supervisor, the directory in which it was started, and the
// terminal.
func LetGo() error {
	signal.Ignore(syscall.SIGHUP)
	if err := os.Chdir("/"); err != nil {
		return err
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	for fd := range 3 {
		if err := unix.Dup3(int(null.Fd()), fd, 0); err != nil {
			return err
		}
	}
	return nil
}
