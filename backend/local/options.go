package local

// Options say where a backend keeps what it needs. The zero value is what most want.
type Options struct {
	// StateDir holds the directory of each sandbox that lives. Empty means
	// $LLMSANDBOX_STATE_DIR, else $XDG_RUNTIME_DIR/llmsandbox, or /run/llmsandbox
	// for root. All processes that share it see each other's sandboxes.
	StateDir string
	// CacheDir holds the unpacked agent, images and disks. Empty means
	// $LLMSANDBOX_CACHE_DIR, else $XDG_CACHE_HOME/llmsandbox or
	// ~/.cache/llmsandbox, or /var/cache/llmsandbox for root. Private disks are
	// kept here, so it should not be on a tmpfs.
	CacheDir string

	agent string
}
