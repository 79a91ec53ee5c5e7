package mcp

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
)

// clients are programs of npm, installed once for a list of exact versions.
type clients struct{ dir string }

var install = sync.OnceValues(func() (clients, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return clients{}, err
	}
	list, err := os.ReadFile("clients/package.json")
	if err != nil {
		return clients{}, err
	}
	lock, err := os.ReadFile("clients/package-lock.json")
	if err != nil {
		return clients{}, err
	}
	dir := filepath.Join(cache, "llmsandbox-test", fmt.Sprintf("mcp-clients-%x", sha256.Sum256(append(list, lock...)))[:32])
	if _, err := os.Stat(dir); err == nil {
		return clients{dir}, nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return clients{}, err
	}
	fresh, err := os.MkdirTemp(filepath.Dir(dir), "new-*")
	if err != nil {
		return clients{}, err
	}
	defer os.RemoveAll(fresh)
	for name, data := range map[string][]byte{"package.json": list, "package-lock.json": lock} {
		if err := os.WriteFile(filepath.Join(fresh, name), data, 0o644); err != nil {
			return clients{}, err
		}
	}
	if err := npm(fresh); err != nil {
		return clients{}, err
	}
	if err := os.Rename(fresh, dir); err != nil && !errors.Is(err, os.ErrExist) {
		if _, other := os.Stat(dir); other != nil { // nor has another process done it
			return clients{}, err
		}
	}
	return clients{dir}, nil
})

// node is a program of npm's as a command line: with the Node.js that was installed with
// it, since a distribution's may be too old.
func node(t *testing.T, program string) []string {
	t.Helper()
	c, err := install()
	if err != nil {
		missing(t, "the clients could not be installed", err)
	}
	arch := map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	return []string{filepath.Join(c.dir, "node_modules/node-linux-"+arch+"/bin/node"), filepath.Join(c.dir, "node_modules", program)}
}
