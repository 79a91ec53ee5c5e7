// Package local is the embedded backend: sandboxes of Linux namespaces on this very
// machine, with no daemon.
//
// Create starts the guest agent as the first process of new user, mount, pid,
// network, IPC and UTS namespaces, inside a cgroup, and sends it a plan of the root
// filesystem to build. The sandbox lives in a directory of the state directory:
//
//	<state>/sandboxes/<id>/lock        locked by the owner for as long as it lives
//	<state>/sandboxes/<id>/info        what List and Attach report
//	<state>/sandboxes/<id>/agent.sock  where any process of the same user dials the agent
//
// The agent holds one end of a socket whose other end the owner holds: when the owner
// dies, however it dies, the agent exits, and the kernel ends everything in its pid
// namespace. What is left then is a directory that no process has locked and an empty cgroup,
// which the next Create or GC removes.
package local

// Options say where a backend keeps what it needs. The zero value is what most want.
type Options struct {
	// StateDir holds the directory of each sandbox that lives. Empty means
	// $LLMSANDBOX_STATE_DIR, else $XDG_RUNTIME_DIR/llmsandbox, or /run/llmsandbox
	// for root. All processes that share it see each other's sandboxes. Volumes are there too where it
	// is set, else in /var/lib/llmsandbox for root or $XDG_STATE_HOME/llmsandbox or ~/.local/state/llmsandbox.
	StateDir string
	// CacheDir holds the unpacked agent, images and disks. Empty means
	// $LLMSANDBOX_CACHE_DIR, else $XDG_CACHE_HOME/llmsandbox or
	// ~/.cache/llmsandbox, or /var/cache/llmsandbox for root. Private disks are
	// kept here, so it should not be on a tmpfs.
	CacheDir string
	// Isolation is how sandboxes are kept apart: "namespace", by Linux namespaces, seccomp and Landlock; or "process", without
	// namespaces, which works in any container and is weaker: see docs/containers.md. Empty and "auto" are namespace: nothing falls
	// to process by itself.
	Isolation string

	agent string
}
