//go:build linux

package guest

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// A zygote is a process that forks others: StartRequest.Forks. Its descriptor 3 is a socket. A message
// on that is one byte with five descriptors: the stdin, stdout and stderr, and the control pipes of a
// process to fork. The answer is that one's pid as a decimal number, or 0.
//
// The process is forked twice, so that its parent is the zygote's subreaper, which
// tells how it ends: nothing of that is the word of code. What the process leaves behind becomes the
// subreaper's child as well, and whose it is shows only if there is one such process at a time.
type zygote struct {
	process *process
	socket  *os.File

	mu       sync.Mutex
	forking  bool
	early    []record // that came while forking
	forked   *process // nil: none, or all of it is gone
	finished bool     // the subreaper has ended
}

// forkWait bounds the wait for an answer. A zygote that code has stopped gives none, and is killed.
const forkWait = 5 * time.Second

// openZygote makes the socket that becomes descriptor 3.
func (p *process) openZygote(l *launch, ends *childEnds) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return resourceError("make a socket", err)
	}
	*ends = append(*ends, pair[1])
	l.control[0] = uintptr(pair[1])
	if err := unix.SetNonblock(pair[0], true); err != nil {
		unix.Close(pair[0])
		return resourceError("prepare a socket", err)
	}
	p.zygote = &zygote{process: p, socket: os.NewFile(uintptr(pair[0]), "zygote")}
	return nil
}

// fork starts a process by the zygote with that id.
func (a *Agent) fork(req *agentproto.StartRequest) (*process, error) {
	if len(req.Argv)+len(req.Env)+len(req.Dir)+len(req.User)+len(req.Rlimits) > 0 || req.PTY != nil || req.Stdin && len(req.Feed) == 0 || req.Merge || req.Forks || !req.Control || req.KeepChildren {
		return nil, agentproto.Errorf(agentproto.CodeBadRequest, "a process that is forked has control pipes, and what else it is started with is the zygote's")
	}
	from, err := a.find(req.From)
	if err != nil {
		return nil, err
	}
	z := from.zygote
	if z == nil {
		return nil, agentproto.Errorf(agentproto.CodeBadRequest, "process %d is not one that forks others", req.From)
	}
	if err := z.claim(); err != nil {
		return nil, err
	}
	p, err := z.start(req)
	if err != nil {
		z.mu.Lock()
		z.forking, z.early = false, nil
		z.mu.Unlock()
		return nil, err
	}
	return p, nil
}

// claim begins a fork, which ends with begun or by clearing forking.
func (z *zygote) claim() error {
	for {
		running := z.process.isRunning()
		z.mu.Lock()
		before := z.forked
		switch {
		case z.finished || !running:
			z.mu.Unlock()
			return agentproto.Errorf(agentproto.CodeNotFound, "process %d, which was to fork another, has ended", z.process.id)
		case !z.forking && before == nil:
			z.forking = true
			z.mu.Unlock()
			return nil
		}
		z.mu.Unlock()
		if before == nil || !isClosed(before.gone) {
			return agentproto.Errorf(agentproto.CodeBusy, "process %d has forked another, which has not ended", z.process.id)
		}
		<-before.released
	}
}

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

func (z *zygote) start(req *agentproto.StartRequest) (*process, error) {
	a := z.process.agent
	if err := a.writeFiles(req); err != nil {
		return nil, err
	}
	p := a.newProcess(req)
	p.from, p.subreaper, p.released = z, z.process.subreaper, make(chan struct{})
	l := &launch{}
	ends, err := p.openStreams(l, nil)
	defer ends.close()
	if err == nil {
		p.waited, _ = a.proc.waited(p.subreaper)
		p.started = time.Now()
		p.pid, err = z.ask(l)
	}
	if err != nil {
		p.closeStreams()
		return nil, err
	}
	p.running, p.budget = true, req.OutputLimit
	if p.fed != nil {
		go func() {
			_, _ = p.fed.Write(req.Feed) // it fails when the process has ended, or does not care
			p.fed.Close()
		}()
	}
	return p, nil
}

// ask has the zygote fork a process, and returns its pid.
func (z *zygote) ask(l *launch) (int, error) {
	pid, err := z.exchange(l)
	if err == nil && pid > 0 && (pid == z.process.pid || !z.isChild(pid)) {
		err = agentproto.Errorf(agentproto.CodeLost, "it names a process that is not its own")
	}
	if err != nil {
		// What it may have forked meanwhile goes with it.
		go z.process.kill(agentproto.KilledByRequest)
		return 0, agentproto.Errorf(agentproto.CodeNotFound, "process %d does not fork, and is ended: %v", z.process.id, err)
	}
	if pid == 0 {
		return 0, agentproto.Errorf(agentproto.CodeBusy, "process %d cannot fork: a limit of the sandbox is reached: end some of its processes or raise the limit", z.process.id)
	}
	return pid, nil
}

func (z *zygote) exchange(l *launch) (pid int, err error) {
	raw, err := z.socket.SyscallConn()
	if err != nil {
		return 0, err
	}
	rights := unix.UnixRights(int(l.stdio[0]), int(l.stdio[1]), int(l.stdio[2]), int(l.control[0]), int(l.control[1]))
	if err := z.socket.SetDeadline(time.Now().Add(forkWait)); err != nil {
		return 0, err
	}
	var serr error
	if err := raw.Write(func(fd uintptr) bool {
		serr = unix.Sendmsg(int(fd), []byte{0}, rights, nil, unix.MSG_NOSIGNAL)
		return serr != unix.EAGAIN
	}); err != nil {
		return 0, err
	}
	if serr != nil {
		return 0, serr
	}
	var answer [16]byte
	n, err := z.socket.Read(answer[:])
	if err != nil {
		return 0, err
	}
	number, err := strconv.ParseUint(string(bytes.TrimSpace(answer[:n])), 10, 31)
	return int(number), err
}

// isChild reports whether a process is the subreaper's child; one that has just ended still is
// until the subreaper has reported it.
func (z *zygote) isChild(pid int) bool {
	z.mu.Lock()
	defer z.mu.Unlock()
	for _, rec := range z.early {
		if rec.arg == int32(pid) {
			return true
		}
	}
	st, ok := z.process.agent.proc.stat(pid)
	return ok && st.ppid == z.process.subreaper
}

// begun has the process that was forked end when it ends, which may have been meanwhile.
func (z *zygote) begun(p *process) {
	z.mu.Lock()
	z.forking, z.forked = false, p
	early, finished := z.early, z.finished
	z.early = nil
	z.mu.Unlock()
	for _, rec := range early {
		z.reaped(rec)
	}
	if finished {
		z.lost(p)
	}
}

// mostEarly bounds the records that are kept of processes that end while another is forked.
const mostEarly = 64

// reaped handles the subreaper's record that one of its children other than the zygote has ended.
func (z *zygote) reaped(rec record) {
	z.mu.Lock()
	p := z.forked
	if z.forking && len(z.early) < mostEarly {
		z.early = append(z.early, rec)
	}
	z.mu.Unlock()
	if p == nil {
		return
	}
	ended := rec.arg == int32(p.pid) && p.isRunning()
	if ended {
		p.mainEnded(rec)
	}
	signalled(p.reaped)
	none := z.nothingLeft()
	switch {
	case ended && none:
		p.allGone()
		go p.settle(true)
	case ended:
		go p.killRest()
		go p.settle(false)
	case none && !p.isRunning():
		p.allGone()
	}
}

// nothingLeft reports whether the zygote is the only child that the subreaper has. A child that
// is there all the time is seen, and one that ends meanwhile is reported later.
func (z *zygote) nothingLeft() bool {
	proc, skip := z.process.agent.proc, z.spared()
	dir, err := proc.dir(z.process.subreaper)
	if err != nil {
		return false
	}
	children, err := proc.childrenByStat(dir)
	return err == nil && !slices.ContainsFunc(proc.known(children), func(pid int) bool { return !skip[pid] })
}

// spared is what does not belong to the process that was forked.
func (z *zygote) spared() map[int]bool {
	if !z.process.isRunning() {
		return nil // another process may have its pid
	}
	return map[int]bool{z.process.pid: true}
}

// release makes room for the next one, once nothing of p is left, its files included.
func (z *zygote) release(p *process) {
	z.mu.Lock()
	z.forked = nil
	z.mu.Unlock()
	z.process.agent.ended(p)
	close(p.released)
}

// exited handles the end of the zygote. The process that it has forked goes on; anything else that it has left is killed.
func (z *zygote) exited() {
	z.socket.Close()
	z.mu.Lock()
	p := z.forked
	alone := p == nil && !z.forking
	z.mu.Unlock()
	if alone {
		go z.process.killRest()
	} else if p != nil {
		signalled(p.reaped) // a kill that goes on spares nothing now
	}
}

// over handles the end of the subreaper, and so of everything below it.
func (z *zygote) over() {
	z.mu.Lock()
	z.finished = true
	p := z.forked
	z.mu.Unlock()
	z.socket.Close()
	if p != nil {
		z.lost(p)
	}
}

// lost ends what is known of a process whose subreaper has ended: its end was not seen, unless
// it was reported before.
func (z *zygote) lost(p *process) {
	unseen := p.unseen()
	p.allGone()
	if unseen {
		go p.settle(true)
	}
}
