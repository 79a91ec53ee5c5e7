//go:build linux

package guest

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
	"github.com/llmsandbox/llmsandbox/internal/guest/nsinit"
)

// makeUsers makes the user namespace of Options.OwnUsers, of a process that waits meanwhile. A process of it has no power
// over the agent and over the other namespaces, which belong to the agent's user namespace, whatever it is in its own.
func (a *Agent) makeUsers() (err error) {
	// Files in /proc of a process that is not dumpable are out of reach. No code runs yet that could use the moment.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0); err != nil {
		return err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	pid, err := a.forkUsers(r.Fd(), w.Fd())
	if err != nil {
		w.Close()
		return err
	}
	defer func() {
		w.Close() // it waits for that
		_, werr := unix.Wait4(int(pid), nil, 0, nil)
		err = errors.Join(err, werr)
	}()
	dir, err := a.proc.dir(int(pid))
	if err != nil {
		return err
	}
	proc := "/proc/" + dir + "/"
	ids := fmt.Appendf(nil, "0 %d 1\n1 1 %d\n", nsinit.RootID, nsinit.RootID-1)
	if err := errors.Join(os.WriteFile(proc+"uid_map", ids, 0), os.WriteFile(proc+"gid_map", ids, 0)); err != nil {
		return err
	}
	a.users, err = unix.Open(proc+"ns/user", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	return err
}

// forkUsers forks that process. Root could have processes of many users, each with a limit of its own. The limit of processes at this
// moment holds for the whole namespace, from Linux 5.14 on: it is that of one user and the threads of the agent, which starts
// with about as many as its spare ones.
func (a *Agent) forkUsers(r, w uintptr) (pid uintptr, err error) {
	for _, limit := range a.opts.Rlimits {
		if limit.Resource != unix.RLIMIT_NPROC {
			continue
		}
		var before unix.Rlimit
		if err := unix.Getrlimit(unix.RLIMIT_NPROC, &before); err != nil {
			return 0, err
		}
		all := unix.Rlimit{Cur: min(limit.Value+2*agentproto.SpareThreads, before.Max), Max: before.Max}
		if err := unix.Setrlimit(unix.RLIMIT_NPROC, &all); err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, unix.Setrlimit(unix.RLIMIT_NPROC, &before)) }()
	}
	pid, errno := forkUsers(r, w)
	if errno != 0 {
		return 0, errno
	}
	return pid, nil
}
