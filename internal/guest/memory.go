//go:build linux

package guest

import (
	"bytes"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// A memoryUse is what a process takes.
type memoryUse struct {
	pid   int
	task  string // a thread in /proc that has not ended
	bytes uint64
	exact bool // else it is as if nothing were shared
	dying bool // it has been killed for memory
	memoryStatus
}

// memoryStatus is what /proc/<pid>/status says of memory, in bytes. Pages of files are left out: the kernel can take them
// back.
type memoryStatus struct {
	size, anonymous, shared, swapped uint64
	own                              uint64 // shared with no other: tables of pages, huge pages
}

// most is what the process takes if nothing is shared with another.
func (s memoryStatus) most() uint64 { return s.anonymous + s.shared + s.swapped + s.own }

// parseMemory parses the status file of a thread. There is nothing of memory in that of one that has ended.
func parseMemory(status []byte) (s memoryStatus, threads uint64) {
	resident, split := uint64(0), false
	for line := range bytes.Lines(status) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		switch string(name) {
		case "VmSize":
			s.size = kibibytes(value)
		case "VmRSS":
			resident = kibibytes(value)
		case "RssAnon":
			s.anonymous, split = kibibytes(value), true
		case "RssShmem":
			s.shared = kibibytes(value)
		case "VmSwap":
			s.swapped = kibibytes(value)
		case "VmPTE", "HugetlbPages":
			s.own += kibibytes(value)
		case "Threads":
			threads, _ = strconv.ParseUint(string(bytes.TrimSpace(value)), 10, 32) // the kernel wrote a number
		}
	}
	if !split { // gVisor
		s.anonymous = resident
	}
	return s, threads
}

// kibibytes parses a value such as "  12 kB", in bytes.
func kibibytes(value []byte) uint64 {
	text, _, _ := bytes.Cut(bytes.TrimSpace(value), []byte(" "))
	n, err := strconv.ParseUint(string(text), 10, 50)
	if err != nil {
		return 0
	}
	return n << 10
}

// parseShares parses smaps_rollup: the process's share of the memory that it has, of which every process that has a page too
// has the same share. Kernels before 5.5 do not tell pages of files from others there.
func parseShares(rollup []byte) (n uint64, ok bool) {
	var all, swapped, notFiles uint64
	split := false
	for line := range bytes.Lines(rollup) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		switch string(name) {
		case "Pss":
			all, ok = kibibytes(value), true
		case "Pss_Anon", "Pss_Shmem":
			notFiles += kibibytes(value)
			split = true
		case "SwapPss":
			swapped = kibibytes(value)
		}
	}
	if !split {
		notFiles = all
	}
	return notFiles + swapped, ok
}

// lookAtMemory kills the largest process while all together have more than they may.
func (w *watching) lookAtMemory() (took time.Duration) {
	var uses []memoryUse
	var most uint64
	took = cpuTime(func() { uses, most = w.memoryUses() })
	if most <= w.memory {
		return took
	}
	// Memory that was shared becomes a process's own without any growth that could be seen.
	wait := min(watchShare*w.measured.took, longestWait)
	urgent := most-min(most, w.most) > w.memory-min(w.memory, w.shares)
	if time.Since(w.measured.at) < wait && !w.measured.due(urgent, 0) {
		return took
	}
	var over bool
	w.measured.look(func() { w.shares, over = w.share(uses, most) })
	w.most = most
	for over {
		pid := w.largest()
		if pid == 0 {
			break
		}
		w.killForMemory(pid)
		uses, most = w.memoryUses()
		_, over = w.share(uses, most)
		w.measured = closer{} // the next look is at other processes
	}
	return took
}

// largest is the process to kill, but for those that have been and are not gone; 0: there is none, or no more need for it.
func (w *watching) largest() (pid int) {
	w.only.Lock()
	defer w.only.Unlock()
	resume := w.freeze()
	// Before anything is killed: the stopped members of a process group may be hung up when another ends.
	defer resume()
	uses, total := w.memoryUses()
	if _, over := w.share(uses, total); !over {
		return 0
	}
	most := uint64(0)
	for _, u := range uses {
		if !u.dying && u.bytes > most {
			pid, most = u.pid, u.bytes
		}
	}
	return pid
}

// goneWait is for how long what a killed process has counts as given back. The kernel waits as long, ten times a tenth of a
// second, before it kills another: MAX_OOM_REAP_RETRIES in its mm/oom_kill.c.
const goneWait = time.Second

// A victim is a process that has been killed for memory and is not gone. On a busy machine that takes a while, in which no other
// is to be killed for what it still has.
type victim struct {
	started uint64 // as in procStat: its number may be another's by now
	killed  time.Time
}

// killForMemory kills a process. Whoever hears of its end finds it counted.
func (w *watching) killForMemory(pid int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	st, _ := w.agent.proc.stat(pid)
	if err := unix.Kill(pid, unix.SIGKILL); err == nil {
		w.kills++
	}
	w.victims[pid] = victim{st.started, time.Now()}
}

// memoryUses lists the processes, and what they have together if nothing is shared.
func (w *watching) memoryUses() (uses []memoryUse, most uint64) {
	victims := map[int]victim{}
	for _, pid := range w.pids() {
		u := w.memoryUse(pid)
		if v, ok := w.victims[pid]; ok {
			if st, _ := w.agent.proc.stat(pid); st.started == v.started {
				victims[pid], u.dying = v, true
				if time.Since(v.killed) < goneWait {
					u.bytes, u.exact = 0, true
				}
			}
		}
		uses = append(uses, u)
		most += u.bytes
	}
	w.victims = victims
	return uses, most
}

// share sets what each process has of the memory that they have together, which it returns, and reports whether that is more than
// they may have. It looks at no more processes than that needs: it takes the kernel long for large ones.
func (w *watching) share(uses []memoryUse, total uint64) (uint64, bool) {
	for range uses {
		if total <= w.memory {
			return total, false
		}
		var u *memoryUse
		for i := range uses {
			if v := &uses[i]; !v.exact && (u == nil || v.bytes > u.bytes) {
				u = v
			}
		}
		if u == nil {
			break // it is known of all
		}
		total -= u.bytes
		u.bytes, u.exact = w.shareOf(u), true
		total += u.bytes
	}
	for i := range uses {
		if total > w.memory && w.isParents(&uses[i], uses) {
			total -= uses[i].bytes
			uses[i].bytes = 0
		}
	}
	return total, total > w.memory
}

// memoryUse is what a process has if nothing is shared.
func (w *watching) memoryUse(pid int) memoryUse {
	fs := w.agent.proc
	u := memoryUse{pid: pid}
	dir, err := fs.dir(pid)
	if err != nil {
		return u
	}
	status, err := fs.read(dir + "/status")
	if err != nil {
		return u
	}
	u.task = dir
	threads := uint64(0)
	if u.memoryStatus, threads = parseMemory(status); u.size == 0 && threads > 1 {
		// Its first thread has ended, and the others go on.
		for _, u.task = range fs.tasks(pid) {
			if status, err = fs.read(u.task + "/status"); err == nil {
				if u.memoryStatus, _ = parseMemory(status); u.size > 0 {
					break
				}
			}
		}
	}
	u.bytes = u.most()
	return u
}

// shareOf is what a process has of the memory of all. If it does not let others look, all that it has counts.
func (w *watching) shareOf(u *memoryUse) uint64 {
	rollup, err := w.agent.proc.read(u.task + "/smaps_rollup")
	if err == nil {
		if n, ok := parseShares(rollup); ok {
			return n + u.own
		}
	}
	return u.most()
}

// isParents reports whether a process has its parent's memory, as one has that was started by vfork until it executes another
// program: its share counts that as if it were another's.
func (w *watching) isParents(u *memoryUse, all []memoryUse) bool {
	st, ok := w.agent.proc.stat(u.pid)
	if !ok {
		return false
	}
	i := slices.IndexFunc(all, func(p memoryUse) bool { return p.pid == st.ppid })
	return i >= 0 && all[i].memoryStatus == u.memoryStatus && w.sameMemory(u.pid, st.ppid)
}

// sameMemory reports whether two processes have the same memory: then they have the same filter of core files, which a process may set for another
// of its user, and which is nothing to a process without core files. Code that sets it as fast as it can does not
// guess what it is set to.
func (w *watching) sameMemory(pid, other int) bool {
	fs := w.agent.proc
	const filter = "coredump_filter"
	dir, err := fs.dir(pid)
	if err != nil {
		return false
	}
	before, err := fs.read(dir + "/" + filter)
	if err != nil {
		return false
	}
	var values [4]byte
	if _, err := unix.Getrandom(values[:], 0); err != nil {
		return false
	}
	same := true
	for _, v := range values {
		set := []byte(strconv.Itoa(int(v)))
		seen, err := []byte(nil), fs.write(dir+"/"+filter, set)
		if err == nil {
			seen, err = fs.of(other, filter)
		}
		got, perr := strconv.ParseUint(string(bytes.TrimSpace(seen)), 16, 32)
		same = same && err == nil && perr == nil && got == uint64(v)
	}
	_ = fs.write(dir+"/"+filter, append([]byte("0x"), bytes.TrimSpace(before)...)) // nothing depends on it
	return same
}
