package podman

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/moby/moby/api/types/system"
	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox/internal/layerstore"
	"github.com/llmsandbox/llmsandbox/internal/statedir"
)

// maxAge bounds for how long an answer is kept. A service that systemd starts when it is needed
// cannot be told from one that it has started anew.
const maxAge = 10 * time.Minute

// prefix is what the names of kept answers begin with.
const prefix = "podman-info-"

// knownInfo is askInfo, whose answer takes Podman half a second, with the answer that any process of
// this user has got from the same service within maxAge.
func knownInfo(ctx context.Context, c *client.Client) (system.Info, error) {
	path := infoFile(ctx, c)
	if path == "" {
		return askInfo(ctx, c)
	}
	if i, ok := readInfo(path, time.Now()); ok {
		return i, nil
	}
	i, err := askInfo(ctx, c)
	if err == nil {
		_ = writeInfo(path, i) // the next process asks again
	}
	return i, err
}

// infoFile is where the answer of a service is kept; empty where the service cannot be told from another.
func infoFile(ctx context.Context, c *client.Client) string {
	service := serviceOf(ctx, c)
	if service == "" {
		return ""
	}
	dir, err := statedir.Default()
	if err != nil || layerstore.MakePrivate(dir) != nil {
		return ""
	}
	sum := sha256.Sum256([]byte(service))
	return filepath.Join(dir, fmt.Sprintf("%s%x", prefix, sum[:8]))
}

func readInfo(path string, now time.Time) (i system.Info, ok bool) {
	at, err := os.Lstat(path)
	if err != nil || !at.Mode().IsRegular() || at.Size() > maxInfo {
		return i, false
	}
	if age := now.Sub(at.ModTime()); age < 0 || age > maxAge {
		return i, false
	}
	data, err := os.ReadFile(path)
	return i, err == nil && json.Unmarshal(data, &i) == nil
}

// writeInfo puts an answer in its place at once.
func writeInfo(path string, i system.Info) error {
	data, err := json.Marshal(i)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+"-")
	if err != nil {
		return err
	}
	removeOld(filepath.Dir(path))
	_, err = f.Write(data)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// removeOld removes answers that are no longer used, such as those of services that have ended.
func removeOld(dir string) {
	paths, _ := filepath.Glob(filepath.Join(dir, prefix+"*")) // the pattern is a valid one
	for _, path := range paths {
		if at, err := os.Lstat(path); err == nil && time.Since(at.ModTime()) > maxAge {
			_ = os.Remove(path) // another process may have been faster
		}
	}
}
