package hostroot

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// lookedAge is for how long it counts what a directory was found to keep from others: it takes a second to look at all
// files of a machine's toolchains.
const lookedAge = 10 * time.Minute

// maxPrivate bounds what is hidden of a directory; more is not a directory of toolchains.
const maxPrivate = 10_000

// privatePrefix begins the names of layers that hide.
const privatePrefix = "hostroot-private-"

// Private returns a layer for an overlay that hides what others may not read below a directory, whose path has no symbolic
// links: it holds whiteouts, and is empty when there is nothing to hide. In a sandbox that has the directory as its own, code could
// read that else. It counts for ten minutes.
func Private(cacheDir, dir string) (layer string, err error) {
	looked := filepath.Join(cacheDir, "hostroot-looked-"+hash(dir))
	if info, err := os.Lstat(looked); err == nil && time.Since(info.ModTime()).Abs() < lookedAge {
		name, err := os.ReadFile(looked)
		layer = filepath.Join(cacheDir, filepath.Base(string(name)))
		if err == nil && strings.HasPrefix(filepath.Base(layer), privatePrefix) && isLayer(layer) { // a machine that crashed may have left it empty
			return layer, nil
		}
	}
	// What is made private while this looks must be found after the next lookedAge.
	begin := time.Now()
	private, err := unreadable(dir)
	if err != nil {
		return "", fmt.Errorf("look for what only root may read below %s: %w", dir, err)
	}
	layer = filepath.Join(cacheDir, privatePrefix+hash(strings.Join(append(private, dir), "\x00")))
	if !isLayer(layer) {
		err := build(cacheDir, layer, func(b *builder) {
			for _, name := range private {
				b.mkdir(filepath.Join("/", filepath.Dir(name)))
				if b.err == nil {
					b.try(unix.Mknod(filepath.Join(b.dir, name), unix.S_IFCHR, 0)) // what overlayfs takes for "removed"
				}
			}
		})
		if err != nil {
			return "", fmt.Errorf("hide what only root may read below %s: %w", dir, err)
		}
	}
	tmp, err := os.CreateTemp(cacheDir, ".hostroot-")
	if err != nil {
		return "", err
	}
	_, err = tmp.WriteString(filepath.Base(layer))
	if err = errors.Join(err, tmp.Close(), os.Chtimes(tmp.Name(), begin, begin)); err == nil {
		err = os.Rename(tmp.Name(), looked)
	}
	if err != nil {
		return "", errors.Join(err, os.Remove(tmp.Name()))
	}
	return layer, nil
}

func isLayer(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.IsDir()
}

func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:12])
}

// hasPassword reports whether a text has an address with a password in it, as the package sources of a machine may.
func hasPassword(text []byte) bool { return addressWithPassword().Match(text) }

var addressWithPassword = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`://[^/\s]*@`) })

// unreadable returns the names below dir of what others may not read, or not enter, without what is below those. Of settings it
// returns those with a password, too.
func unreadable(dir string) ([]string, error) {
	var names []string
	info, err := os.Lstat(dir)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, errors.New("it is no directory")
	}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it has just gone
		}
		if err != nil {
			return err
		}
		if d.Type()&fs.ModeSymlink != 0 {
			return nil
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		need := fs.FileMode(0o4)
		if d.IsDir() {
			need = 0o5
		}
		if info.Mode()&need == need {
			if !strings.HasPrefix(path, "/etc/") || !info.Mode().IsRegular() {
				return nil
			}
			if text, err := os.ReadFile(path); err != nil || !hasPassword(text) {
				return err
			}
		}
		if path == dir {
			return errors.New("others may not read the directory itself")
		}
		if len(names) == maxPrivate {
			return fmt.Errorf("others may not read more than %d files", maxPrivate)
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		names = append(names, name)
		if d.IsDir() {
			return fs.SkipDir
		}
		return nil
	})
	return names, err
}

// MountedBelow returns the first mount point below a directory; empty: there is none.
func MountedBelow(dir string) (string, error) {
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", fmt.Errorf("look for mounts below %s: %w", dir, err)
	}
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	for line := range bytes.Lines(b) {
		fields := strings.Fields(string(line))
		if len(fields) < 5 {
			continue
		}
		if point := unescape.Replace(fields[4]); strings.HasPrefix(point, strings.TrimSuffix(dir, "/")+"/") {
			return point, nil
		}
	}
	return "", nil
}
