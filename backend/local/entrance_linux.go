package local

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/guest/nsinit"
	"github.com/llmsandbox/llmsandbox/internal/wire"
)

// An entrance is the way out of a sandbox of which a process forks others into new sandboxes. Their user and pid
// namespaces are below its own, since a process enters no others.
type entrance struct {
	users     identity
	user, pid *os.File      // its namespaces
	socket    *os.File      // the process is asked on it
	launcher  *os.File      // what starts agents below the sandbox is asked on it
	ended     chan struct{} // closed when that has ended
	program   *os.File      // the agent's, which any user may execute

	asking, launching sync.Mutex // held to ask

	mu   sync.Mutex
	used map[uint32]bool // the pairs of ids that its sandboxes have
}

// Each sandbox of a parent has a pair of users of its own, of a block that the parent's user namespace maps.
const (
	entrancePairs = 4096
	// entranceIDs is where the block begins inside, above all ids that an image may use.
	entranceIDs = 1 << 24
)

// withBlock returns an identity that has a block of ids for the sandboxes that are entered.
func (id identity) withBlock(name string) identity {
	if id.helpers || !id.separate {
		return id // they have its own
	}
	h := fnv.New32a()
	h.Write([]byte("block of " + name))
	id.block = firstRootID + 2*entrancePairs*(h.Sum32()%(rootIDPairs/entrancePairs))
	return id
}

// take returns the users of another sandbox, which are given back by release.
func (e *entrance) take() (identity, error) {
	id := e.users
	if id.block == 0 {
		return id, nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	first := rand.Uint32N(entrancePairs) // they tell nothing of how many others there are
	for i := range uint32(entrancePairs) {
		if n := (first + i) % entrancePairs; !e.used[n] {
			e.used[n] = true
			id.agentUID, id.codeUID = id.block+2*n, id.block+2*n+1
			id.agentGID, id.codeGID, id.block = id.agentUID, id.codeUID, 0
			return id, nil
		}
	}
	return id, fmt.Errorf("%d sandboxes are open that were forked from one: close some", entrancePairs)
}

func (e *entrance) release(id identity) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.used, (id.agentUID-e.users.block)/2)
}

// maps are a sandbox's users: their ids inside, and as they are called in the parent's user namespace.
func (e *entrance) maps(id identity) (uids, gids []nsinit.IDs) {
	parent := func(host, its uint32) uint32 {
		if e.users.block == 0 {
			return its
		}
		return host - e.users.block + entranceIDs
	}
	ids := func(its, host uint32) nsinit.IDs { return nsinit.IDs{Inside: its, Outside: parent(host, its)} }
	uids, gids = []nsinit.IDs{ids(id.insideUID, id.codeUID)}, []nsinit.IDs{ids(id.insideGID, id.codeGID)}
	if id.separate {
		uids, gids = append(uids, ids(0, id.agentUID)), append(gids, ids(0, id.agentGID))
	}
	return uids, gids
}

// open opens the namespaces of the sandbox whose agent has that pid, and starts the launcher there.
func (e *entrance) open(pid int, agent string) (err error) {
	if e.user, err = os.Open(fmt.Sprintf("/proc/%d/ns/user", pid)); err != nil {
		return err
	}
	if e.pid, err = os.Open(fmt.Sprintf("/proc/%d/ns/pid", pid)); err != nil {
		return err
	}
	return e.startLauncher(agent)
}

// close is called once the sandbox has ended.
func (e *entrance) close() {
	if e.ended != nil {
		<-e.ended
	}
	for _, f := range []*os.File{e.user, e.pid, e.socket, e.launcher, e.program} {
		f.Close() // one that was not opened is nil, and this an error that says nothing more
	}
}

// entryWait bounds the wait for the process of the parent.
const entryWait = 10 * time.Second

// takeIn has the parent's process fork one into the sandbox, whose agent has been set up and says what that needs.
func (a *newAgent) takeIn(ctx context.Context, l *launch) error {
	text, fds, err := receivePacket(a.process.owner)
	if err != nil {
		return a.failed(ctx, fmt.Errorf("the agent ended during set-up: %w", err))
	}
	defer func() {
		for _, fd := range fds {
			unix.Close(fd)
		}
	}()
	groups, err := l.group.Join()
	if err != nil {
		return err
	}
	all := fds
	for _, f := range groups {
		defer f.Close()
		all = append(all, int(f.Fd()))
	}
	if err := l.parent.ask(text, all); err != nil {
		return err
	}
	var done [1]byte
	if n, err := a.process.owner.Read(done[:]); err != nil || n == 0 {
		return a.failed(ctx, errors.New("the agent ended when a process of another sandbox came in"))
	}
	return nil
}

// ask has the process fork one into the sandbox that the descriptors are of.
func (e *entrance) ask(text []byte, fds []int) error {
	e.asking.Lock()
	defer e.asking.Unlock()
	answer, got, err := exchange(e.socket, text, fds)
	for _, fd := range got {
		unix.Close(fd)
	}
	switch {
	case err != nil: // also one that does not answer in time, and whose answer would be taken for the next one's
		return fmt.Errorf("%w: %w", backend.ErrZygoteEnded, errors.Join(err, e.socket.Close()))
	case string(answer) != "0":
		return errors.New("the process that is forked into sandboxes has failed to: a limit of its own sandbox may be reached")
	}
	return nil
}

// CreateZygote starts a sandbox of which a process may be forked into others, by CreateFrom.
func (b *Backend) CreateZygote(ctx context.Context, spec backend.Spec) (backend.Machine, error) {
	if b.inPlace() {
		return nil, fmt.Errorf("fork interpreters into sandboxes: %w: the isolation process has no namespaces that one could enter", backend.ErrUnsupported)
	}
	return b.create(ctx, spec, func(c *creation) { c.entrance = &entrance{used: map[uint32]bool{}} })
}

// CreateFrom starts a sandbox into which a process of one that CreateZygote has started is forked. It has that tag.
func (b *Backend) CreateFrom(ctx context.Context, spec backend.Spec, zygote backend.Machine, tag string) (backend.Machine, error) {
	m, ok := zygote.(*machine)
	if !ok || m.entrance == nil {
		return nil, fmt.Errorf("create a sandbox from another: %w: it is none of CreateZygote", backend.ErrInvalid)
	}
	return b.create(ctx, spec, func(c *creation) { c.parent, c.tag = m.entrance, tag })
}

var _ backend.Zygotes = (*Backend)(nil)

// startLauncher starts the process that starts agents below the sandbox.
func (e *entrance) startLauncher(agent string) error {
	fd, err := unix.Open(agent, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("the agent's program: %w", err)
	}
	e.program = os.NewFile(uintptr(fd), agent)
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	ours, theirs, err := packetPair("launcher")
	if err != nil {
		return err
	}
	defer theirs.Close()
	e.launcher = ours
	pid, err := startInside(e.user, e.pid, e.program, []string{"llmsandbox-agent", "launch"}, []uintptr{null.Fd(), null.Fd(), null.Fd(), theirs.Fd()})
	if err != nil {
		return err
	}
	pidfd, err := unix.PidfdOpen(pid, unix.O_NONBLOCK)
	if err != nil {
		return errors.Join(err, unix.Kill(pid, unix.SIGKILL), reap(pid))
	}
	p := &process{pid: pid, pidfd: os.NewFile(uintptr(pidfd), "launcher")}
	e.ended = make(chan struct{})
	go func() {
		_, _ = p.wait() // else the pid namespace does not end; its status says nothing
		p.pidfd.Close()
		close(e.ended)
	}()
	return nil
}

// launch has an agent started in a group, below the sandbox.
func (e *entrance) launch(ctx context.Context, l *launch, args []string, files []uintptr) (p *process, err error) {
	id := l.identity
	m := nsinit.Launch{Args: args, Files: uint32(len(files)), UID: e.users.insideUID, GID: e.users.insideGID, Groups: id.separate, AsRoot: id.helpers}
	m.UIDs, m.GIDs = e.maps(id)
	fds := []int{int(e.program.Fd())}
	for _, f := range files {
		fds = append(fds, int(f))
	}
	err = l.group.StartElsewhere(ctx, func(tasks []*os.File) (int, error) {
		all := fds
		for _, f := range tasks {
			all = append(all, int(f.Fd()))
		}
		answer, pidfd, err := e.askLauncher(m, all)
		if err != nil {
			return 0, err // and there is no process
		}
		p = &process{pidfd: pidfd, parent: e, launched: int(answer.PID)}
		p.pid, err = pidOf(pidfd)
		return p.pid, err
	})
	if err != nil && p != nil {
		kerr := p.kill()
		_, werr := p.wait()
		err = errors.Join(err, kerr, werr, p.pidfd.Close())
	}
	return p, err
}

// wait returns the status of an agent that has ended, a kill where the sandbox above has ended with it.
func (e *entrance) wait(launched int) unix.WaitStatus {
	answer, _, err := e.askLauncher(nsinit.Launch{Wait: uint32(launched)}, nil)
	if err != nil {
		return unix.WaitStatus(unix.SIGKILL) // what all get then
	}
	return unix.WaitStatus(answer.Status)
}

func (e *entrance) askLauncher(m nsinit.Launch, fds []int) (answer nsinit.Launched, pidfd *os.File, err error) {
	e.launching.Lock()
	defer e.launching.Unlock()
	text, got, err := exchange(e.launcher, wire.Append(nil, &m), fds)
	if err != nil { // as in ask
		return answer, nil, fmt.Errorf("%w: %w", backend.ErrZygoteEnded, errors.Join(err, e.launcher.Close()))
	}
	if len(got) > 0 {
		err = unix.SetNonblock(got[0], true)
		pidfd = os.NewFile(uintptr(got[0]), "agent")
	}
	_, derr := wire.Decode(text, &answer)
	err = errors.Join(err, derr)
	if answer.Error != "" {
		err = fmt.Errorf("start an agent below another sandbox: %s", answer.Error)
	}
	return answer, pidfd, err
}

// pidOf is the pid of a process, as it is called here.
func pidOf(pidfd *os.File) (int, error) {
	raw, err := pidfd.SyscallConn()
	if err != nil {
		return 0, err
	}
	var info []byte
	var rerr error
	if err := raw.Control(func(fd uintptr) { info, rerr = os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", fd)) }); err != nil || rerr != nil {
		return 0, errors.Join(err, rerr)
	}
	for line := range strings.Lines(string(info)) {
		if number, ok := strings.CutPrefix(line, "Pid:"); ok {
			pid, err := strconv.Atoi(strings.TrimSpace(number))
			if err == nil && pid > 0 {
				return pid, nil
			}
		}
	}
	return 0, errors.New("the kernel tells no pid of a pidfd (Linux 5.4 or later is needed), or the process has ended")
}

// openForOther opens what an agent takes from the host that is not the caller's user there, and so may not reach
// it: detached mounts, which are sent after the descriptors that are. It returns how many name a directory of the host that was to be hidden.
func openForOther(steps []nsinit.Step, sent int) (files []*os.File, exposed int, err error) {
	open := func() error {
		for i := range steps {
			s := &steps[i]
			if s.Op != nsinit.OpBind && s.Op != nsinit.OpUnion && s.Op != nsinit.OpBindHidden || strings.HasPrefix(s.Path, "/dev/") {
				continue
			}
			fd, seen, err := s.Open()
			if err != nil {
				return err
			}
			if fd < 0 { // an optional one, which the agent does not find either
				continue
			}
			files = append(files, os.NewFile(uintptr(fd), s.Path))
			if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &unix.MountAttr{Propagation: unix.MS_PRIVATE}); err != nil {
				return fmt.Errorf("mount for %s: %w", s.Path, err)
			}
			if seen {
				exposed++
			}
			s.Op, s.FD, s.Source, s.Options = nsinit.OpReceived, uint32(sent+len(files)-1), "", nil
		}
		return nil
	}
	if slices.ContainsFunc(steps, func(s nsinit.Step) bool { return s.Op == nsinit.OpUnion || s.Op == nsinit.OpBindHidden }) {
		err = inOwnMounts(open) // many layers are mounted for a moment
	} else {
		err = open()
	}
	if err != nil {
		for _, f := range files {
			f.Close()
		}
		return nil, 0, err
	}
	return files, exposed, nil
}

// inOwnMounts calls do on a thread with a mount namespace of its own, which ends with it.
func inOwnMounts(do func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == os.Getpid() { // the main thread does not end
			done <- inOwnMounts(do)
			runtime.UnlockOSThread()
			return
		}
		err := unix.Unshare(unix.CLONE_NEWNS)
		if err == nil {
			err = unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
		}
		if err == nil {
			err = do()
		}
		done <- err
	}()
	return <-done
}

// listen makes the socket of the process that is forked, and returns the process's end.
func (e *entrance) listen() (theirs *os.File, err error) {
	e.socket, theirs, err = packetPair("entrance")
	return theirs, err
}

// packetPair is a socket pair of which ours does not block.
func packetPair(name string) (ours, theirs *os.File, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make a socket: %w", err)
	}
	theirs = os.NewFile(uintptr(pair[1]), name)
	if err := unix.SetNonblock(pair[0], true); err != nil {
		unix.Close(pair[0])
		return nil, nil, errors.Join(err, theirs.Close())
	}
	return os.NewFile(uintptr(pair[0]), name), theirs, nil
}

// exchange sends a packet with descriptors and returns the one that answers it, with its own.
func exchange(socket *os.File, text []byte, fds []int) (answer []byte, got []int, err error) {
	if err := socket.SetDeadline(time.Now().Add(entryWait)); err != nil {
		return nil, nil, err
	}
	if err := sendPacket(socket, text, fds); err != nil {
		return nil, nil, err
	}
	return receivePacket(socket)
}

func sendPacket(socket *os.File, text []byte, fds []int) error {
	raw, err := socket.SyscallConn()
	if err != nil {
		return err
	}
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	var serr error
	err = raw.Write(func(fd uintptr) bool {
		serr = unix.Sendmsg(int(fd), text, rights, nil, unix.MSG_NOSIGNAL)
		return serr != unix.EAGAIN
	})
	return errors.Join(err, serr)
}

func receivePacket(socket *os.File) (text []byte, fds []int, err error) {
	raw, err := socket.SyscallConn()
	if err != nil {
		return nil, nil, err
	}
	var rerr error
	if err := raw.Read(func(fd uintptr) bool {
		text, fds, rerr = nsinit.ReceiveFDs(int(fd))
		return rerr != unix.EAGAIN
	}); err != nil {
		return nil, nil, err
	}
	return text, fds, rerr
}
