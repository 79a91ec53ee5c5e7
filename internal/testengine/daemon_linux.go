package testengine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/moby/moby/client"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// startTimeout and stopTimeout bound what takes a second or two.
const (
	startTimeout = 2 * time.Minute
	stopTimeout  = time.Minute
)

// A command is how a daemon is started.
type command struct {
	argv   []string
	env    []string // all of it; nil: this process's own
	dir    string   // working directory
	socket string   // where it serves, made for it
	log    string   // what it prints
	// runAs is the user; nil: this process's own.
	runAs *syscall.Credential
	// mounts gives it a mount namespace, in which the value is bound over the key.
	mounts map[string]string
	// namespace, when set, is the mount namespace it joins, instead of one with mounts.
	namespace *os.File
}

// A daemon is a running process that serves on a socket.
type daemon struct {
	name string
	cmd  *exec.Cmd
	log  string
	// watcher ends the daemon when this process dies, which closes lifeline.
	watcher  *exec.Cmd
	lifeline *os.File
	done     chan struct{} // closed when it has ended
	err      error         // how; read after done
}

// handOver makes the daemon's mounts, and hands it the listening socket as systemd
// would: a client that connects from now on waits until the daemon answers, so that
// no client has to try again and again. The protocol wants the process's own id.
const handOver = `
set -e
while [ "$1" != -- ]; do mkdir -p "$1" "$2"; mount --bind "$2" "$1"; shift 2; done
shift
export LISTEN_FDS=1 LISTEN_PID=$$
exec "$@"`

// watch sends the daemon one SIGTERM, on which both engines end in good order, when standard input
// ends. The kernel's own signal at a parent's death comes once for each thread that the parent still
// has, and Docker's daemon gives up on an orderly end at the third one.
const watch = `read -r _; kill -TERM "$1"`

// start starts the daemon and returns when it answers.
func start(ctx context.Context, c command) (*daemon, error) {
	if err := os.Remove(c.socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: c.socket, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listen for %s: %w", c.argv[0], err)
	}
	// The socket is the daemon's from here on: when that ends, connections are refused.
	l.SetUnlinkOnClose(false)
	defer l.Close()
	inherited, err := l.File()
	if err != nil {
		return nil, err
	}
	defer inherited.Close()
	log, err := os.OpenFile(c.log, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()

	args, files := []string{"/bin/sh", "-c", handOver, "sh"}, []*os.File{inherited}
	if c.namespace != nil {
		args = append([]string{"nsenter", "--mount=/proc/self/fd/4", "--"}, args...)
		files = append(files, c.namespace)
	} else {
		for target, source := range c.mounts {
			args = append(args, target, source)
		}
	}
	args = append(append(args, "--"), c.argv...)
	d := &daemon{name: filepath.Base(c.argv[0]), log: c.log, done: make(chan struct{}), cmd: exec.Command(args[0], args[1:]...)}
	d.cmd.Dir, d.cmd.Env, d.cmd.Stdout, d.cmd.Stderr = c.dir, c.env, log, log
	d.cmd.ExtraFiles = files
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: c.runAs}
	if c.namespace == nil && len(c.mounts) > 0 {
		d.cmd.SysProcAttr.Unshareflags = syscall.CLONE_NEWNS
	}
	if err := d.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", c.argv[0], err)
	}
	if err := d.startWatcher(); err != nil {
		return nil, errors.Join(fmt.Errorf("watch over %s: %w", c.argv[0], err), d.cmd.Process.Kill(), d.cmd.Wait())
	}
	go d.run()
	// Only the daemon may hold the socket now.
	l.Close()
	inherited.Close()
	if err := d.answers(ctx, c.socket); err != nil {
		return nil, errors.Join(fmt.Errorf("%s does not answer: %w; it printed:\n%s", c.argv[0], err, d.tail()), d.stop())
	}
	return d, nil
}

func (d *daemon) startWatcher() error {
	input, lifeline, err := os.Pipe()
	if err != nil {
		return err
	}
	defer input.Close()
	w := exec.Command("/bin/sh", "-c", watch, "sh", strconv.Itoa(d.cmd.Process.Pid))
	w.Stdin = input
	w.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // an interrupt from the terminal ends this process first
	if err := w.Start(); err != nil {
		lifeline.Close()
		return err
	}
	d.watcher, d.lifeline = w, lifeline
	return nil
}

// run waits for the daemon's end. Its process is only collected once the watcher is gone, since
// its id may be another's from then on.
func (d *daemon) run() {
	err := error(unix.EINTR)
	for errors.Is(err, unix.EINTR) {
		err = unix.Waitid(unix.P_PID, d.cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
	}
	err = errors.Join(err, d.watcher.Process.Kill())
	_ = d.watcher.Wait() // it was killed
	d.lifeline.Close()
	d.err = errors.Join(err, d.cmd.Wait())
	close(d.done)
}

// answers asks once; the question waits in the socket. It fails at once when the
// daemon ends, since its socket ends with it.
func (d *daemon) answers(ctx context.Context, socket string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	c, err := client.New(client.WithHost("unix://" + socket))
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.Ping(ctx, client.PingOptions{})
	return err
}

// stop ends the daemon in good order, and by force when that takes too long, which is
// an error.
func (d *daemon) stop() error {
	return d.end(func() error {
		if err := d.signal(syscall.SIGTERM); err != nil {
			return err
		}
		late := time.NewTimer(stopTimeout)
		defer late.Stop()
		select {
		case <-d.done:
			if d.err != nil {
				return fmt.Errorf("%s ended with %w; it printed:\n%s", d.name, d.err, d.tail())
			}
			return nil
		case <-late.C:
			return errors.Join(fmt.Errorf("%s did not end on SIGTERM within %v; it printed:\n%s", d.name, stopTimeout, d.tail()),
				d.signal(syscall.SIGKILL))
		}
	})
}

// kill ends the daemon as a crash would.
func (d *daemon) kill() error {
	return d.end(func() error { return d.signal(syscall.SIGKILL) })
}

// end waits for the daemon's own children too, once how has ended it: Docker's
// containerd, and the Podman that serves for one without root. Neither is meant to
// live on: both end when the daemon dies, but later than it.
func (d *daemon) end(how func() error) error {
	kids, err := children(d.cmd.Process.Pid)
	if err != nil {
		return err
	}
	defer kids.close()
	if err := how(); err != nil {
		return err
	}
	<-d.done
	return kids.end(d.name)
}

func (d *daemon) signal(s syscall.Signal) error {
	if err := d.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// tail is the end of what the daemon printed.
func (d *daemon) tail() string {
	data, err := os.ReadFile(d.log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	return strings.Join(lines[max(0, len(lines)-30):], "\n")
}

// IgnoreDaemons is for a test that looks for leaked goroutines: each running engine
// has one, which ends with Main.
func IgnoreDaemons() goleak.Option {
	return goleak.IgnoreAnyFunction("github.com/llmsandbox/llmsandbox/internal/testengine.(*daemon).run")
}
