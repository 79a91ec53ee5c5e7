// Package layerstore keeps layers on this machine, which sandboxes mount or are sent:
// prepared caches and installed libraries. A layer is made once among all processes that
// share the store, is only ever seen whole, and stays while it is held.
//
// On disk a store is a directory with
//
//	layers/KEY/about.json  what the layer is
//	layers/KEY/files       its files
//
// and beside each KEY, while it is being made, KEY.lock and KEY.new. Where KEY is a file it
// says why a cache could not be made.
package layerstore

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// A Store is a directory of layers. Its methods may be called concurrently, and by
// several processes.
type Store struct {
	// Dir is the absolute path of a directory that exists, belongs to the caller, and that
	// no other user can write to: [Open] makes sure of that.
	Dir string
}

// Open makes the directory dir a store, and all above it, where they are not there yet. No user
// but the caller may have access to it.
func Open(dir string) (Store, error) {
	dir, err := filepath.Abs(dir)
	if err == nil {
		err = MakePrivate(dir)
	}
	if err != nil {
		return Store{}, fmt.Errorf("cache folder: %w: set LLMSANDBOX_CACHE_DIR to a folder of your own that can be written", err)
	}
	return Store{Dir: dir}, nil
}

// MakePrivate makes a directory, and all above it, where they are not there yet, and makes sure
// that it is no link, that it belongs to the caller and that no other user can enter it.
func MakePrivate(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return ownPrivately(dir)
}

// RootDir is the cache directory of root on Linux.
const RootDir = "/var/cache/llmsandbox"

// DefaultDir is the caller's cache directory, which need not exist yet: LLMSANDBOX_CACHE_DIR,
// or llmsandbox in the directory that the system has for caches. A user of a container without a
// home directory has one below the directory for temporary files.
func DefaultDir() (string, error) {
	if dir := os.Getenv("LLMSANDBOX_CACHE_DIR"); dir != "" {
		return filepath.Abs(dir)
	}
	if runtime.GOOS == "linux" && os.Geteuid() == 0 {
		return RootDir, nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("cache folder: %w: set HOME or LLMSANDBOX_CACHE_DIR", err)
	}
	if filepath.Clean(dir) == "/.cache" { // HOME is then the root, where only root can write
		return filepath.Join(os.TempDir(), fmt.Sprintf("llmsandbox-cache-%d", os.Geteuid())), nil
	}
	return filepath.Join(dir, "llmsandbox"), nil
}

func (s Store) layers() string         { return filepath.Join(s.Dir, "layers") }
func (s Store) path(key string) string { return filepath.Join(s.layers(), key) }

// layerOf returns the directory of the layer that has its files at source.
func (s Store) layerOf(source string) (path string, ok bool) {
	path = filepath.Dir(source)
	return path, filepath.Base(source) == filesName && filepath.Dir(path) == s.layers()
}

// Above are the directories above a layer that only the caller can enter, the outermost first; none for what is no layer of the store.
func (s Store) Above(source string) []string {
	if _, ok := s.layerOf(source); !ok {
		return nil
	}
	return []string{s.Dir, s.layers()}
}

// IsFiles reports whether a path may be that of a layer's files.
func IsFiles(source string) bool {
	return filepath.Base(source) == filesName && filepath.Base(filepath.Dir(filepath.Dir(source))) == "layers"
}

// ValidKey reports whether a layer may have that key: 1 to 100 of a-z, 0-9 and '-', of which
// '-' is not the first.
func ValidKey(key string) bool {
	other := func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' }
	return key != "" && len(key) <= 100 && key[0] != '-' && strings.IndexFunc(key, other) < 0
}
