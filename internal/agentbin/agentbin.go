// Package agentbin holds the guest agent's binaries, built reproducibly from this
// module by go generate.
package agentbin

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

//go:generate go run ./gen

//go:embed agent_linux_amd64.gz
var amd64 []byte

//go:embed agent_linux_arm64.gz
var arm64 []byte

// A packed binary of the agent.
type packed struct{ gz []byte }

var binaries = map[string]*packed{"amd64": {amd64}, "arm64": {arm64}}

func get(arch string) (*packed, error) {
	if p := binaries[arch]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("there is no guest agent for architecture %q: only for amd64 and arm64", arch)
}

// Size returns the size of the agent's binary for a GOARCH, in bytes.
func Size(arch string) (int64, error) {
	p, err := get(arch)
	if err != nil {
		return 0, err
	}
	return p.size(), nil
}

// Key is a short name of the agent's build for a GOARCH, of [0-9a-f-].
func Key(arch string) (string, error) {
	p, err := get(arch)
	if err != nil {
		return "", err
	}
	return p.key(), nil
}

// key distinguishes builds of the agent, by the checksum and size that end the gzip file
// and the length of it. Every process needs it before its first sandbox, and hashing the
// file would take longer than looking for the agent. It is no protection: the agent
// lies where only the caller can write.
func (p *packed) key() string {
	return fmt.Sprintf("%x-%x", p.gz[len(p.gz)-8:], len(p.gz))
}

// size is what the gzip trailer says; the files are far below its limit of 4 GiB.
func (p *packed) size() int64 {
	t := p.gz[len(p.gz)-4:]
	return int64(t[0]) | int64(t[1])<<8 | int64(t[2])<<16 | int64(t[3])<<24
}

// Open returns the agent's binary for a GOARCH.
func Open(arch string) (io.ReadCloser, error) {
	p, err := get(arch)
	if err != nil {
		return nil, err
	}
	return gzip.NewReader(bytes.NewReader(p.gz))
}

// Extract makes the agent for a GOARCH a file in a directory, and returns its path.
// When it is there already, this takes no more than a look. The directory must be one
// that only the caller can write to. It may be called concurrently, also by several
// processes.
func Extract(dir, arch string) (string, error) {
	p, err := get(arch)
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "agent-"+p.key())
	if intact(path, p.size()) {
		return path, nil
	}
	if err := place(path, arch); err != nil {
		return "", fmt.Errorf("put the guest agent into %s: %w", dir, err)
	}
	if !intact(path, p.size()) {
		return "", fmt.Errorf("the guest agent at %s is not as it was written: the folder must belong to the caller and support file modes", path)
	}
	return path, nil
}

// intact reports whether a file is a finished agent of the caller's own. Its content
// is not read: files of that name only ever appear whole.
func intact(path string, size int64) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().IsRegular() && info.Size() == size && ownedSafely(info)
}

// place writes the agent under another name and renames it.
func place(path, arch string) (err error) {
	r, err := Open(arch)
	if err != nil {
		return err
	}
	defer r.Close()
	// A child that has the file open for writing until it executes its own program would keep the
	// agent from being executed.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	f, err := os.CreateTemp(filepath.Dir(path), ".agent-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = io.Copy(f, r)
	if err == nil {
		err = f.Chmod(0o500)
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
