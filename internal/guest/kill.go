//go:build linux

package guest

import "golang.org/x/sys/unix"

// killTree kills everything below a process, and returns once gone is closed.
//
// Each process is killed before its children are listed: after the signal the
// kernel lets it make no further ones, so the list is complete, unless the process
// had ended on its own before; then its children are now the root's, and a further
// pass finds them. A pass is made until one finds nothing new, and again whenever
// the root has waited for something (reaped is signalled), because a list read
// while processes end can miss some. So whatever is missed is found after the event
// that made it be missed; nothing polls.
func killTree(fs procFS, root int, reaped <-chan struct{}, gone <-chan struct{}) {
	for {
		known := map[int]bool{}
		for fresh := true; fresh; {
			select {
			case <-gone:
				return
			default:
			}
			fresh = false
			// Code that shares the agent's uid may have stopped the subreaper.
			_ = unix.Kill(root, unix.SIGCONT)
			fs.walk(root, nil, func(pid int) {
				// ESRCH means that it is gone already.
				_ = unix.Kill(pid, unix.SIGKILL)
				if !known[pid] {
					known[pid], fresh = true, true
				}
			})
		}
		select {
		case <-gone:
			return
		case <-reaped:
		}
	}
}
