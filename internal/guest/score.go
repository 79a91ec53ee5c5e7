//go:build linux

package guest

import (
	"strconv"

	"golang.org/x/sys/unix"
)

// scoresLate reports whether a program's OOM score can only be set once it is executed:
// without capabilities an ordinary user cannot write the files in /proc of a
// non-dumpable process, which a program is until then, and it must be, because it
// still holds a copy of the agent's memory.
func (a *Agent) scoresLate() bool { return !a.caps && a.uid != 0 }

// preferToKill sets the OOM score of a program that runs already, where that was not
// possible before. What the program started in between keeps its own; a failure is
// left, because the limits hold without it.
func (a *Agent) preferToKill(pid int) {
	if a.opts.OOMScoreAdj == 0 || !a.scoresLate() {
		return
	}
	fd, err := unix.Openat(a.proc.fd, strconv.Itoa(pid)+"/oom_score_adj", unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	_, _ = unix.Write(fd, strconv.AppendInt(nil, int64(a.opts.OOMScoreAdj), 10))
}
