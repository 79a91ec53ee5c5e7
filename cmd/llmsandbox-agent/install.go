//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/guest/untar"
)

const (
	// self is the agent's own program, by whatever name it was started.
	self = "/proc/self/exe"
	// layersDir is where the layers lie that come with an installed agent.
	layersDir = "layers"
	// filterFile is the seccomp filter, beside the agent.
	filterFile = "seccomp"

	// closedDir is where a cluster mounts closedFile, which everybody may write to and no
	// limit counts: a directory that no user may enter keeps code away from it.
	closedDir, closedFile = "closed", "log"

	// installedAgent lets all users run the agent and none read it: the kernel then
	// keeps other processes of the same user away from it from its first instruction on.
	installedAgent = 0o111
	// readableAgent is for kernels that run nothing that they may not read, as gVisor's.
	// The agent is then out of reach only once it has started.
	readableAgent = 0o555
	// installedFilter lets everybody read the filter.
	installedFilter = 0o444
)

// install is for places where an agent is brought by an image of its own: it copies itself
// and the filter that lies beside it into a directory that the sandbox mounts. With --readable
// the copy may be read. With --layers it then unpacks the tar stream on stdin into the directory
// layers in there.
func install(args []string) error {
	usage := errors.New("usage: llmsandbox-agent install DIR [--readable] [--layers [FLAG VALUE]...], with the flags of unpack")
	if len(args) == 0 {
		return usage
	}
	dir, rest, mode := args[0], args[1:], os.FileMode(installedAgent)
	if len(rest) > 0 && rest[0] == "--readable" {
		rest, mode = rest[1:], readableAgent
	}
	layers := len(rest) > 0 && rest[0] == "--layers"
	if len(rest) > 0 && !layers {
		return usage
	}
	path, err := os.Readlink(self)
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	if err := installFile(filepath.Join(filepath.Dir(path), filterFile), dir, filterFile, installedFilter); err != nil {
		return fmt.Errorf("install the seccomp filter: %w", err)
	}
	if err := installFile(self, dir, "agent", mode); err != nil {
		return fmt.Errorf("install the agent: %w", err)
	}
	if err := makeClosed(filepath.Join(dir, closedDir)); err != nil {
		return fmt.Errorf("make the closed directory: %w", err)
	}
	if !layers {
		return nil
	}
	return unpack(append([]string{filepath.Join(dir, layersDir)}, rest[1:]...))
}

// installFile copies a file, which then appears under its name whole, in place of what an
// earlier try has left.
func installFile(from, dir, name string, mode os.FileMode) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	temp := filepath.Join(dir, "."+name+".new")
	if err := os.Remove(temp); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	out, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(out, in)
	if err == nil && n == 0 {
		err = fmt.Errorf("%s is empty", from)
	}
	if err == nil {
		err = out.Chmod(mode)
	}
	if err = errors.Join(err, out.Close()); err == nil {
		err = unix.Rename(temp, filepath.Join(dir, name))
	}
	if err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	return nil
}

func makeClosed(dir string) error {
	err := os.Mkdir(dir, 0o700)
	if errors.Is(err, os.ErrExist) {
		err = os.Chmod(dir, 0o700) // an earlier try has closed it
	}
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(filepath.Join(dir, closedFile), nil, 0o600), os.Chmod(dir, 0))
}

// These bound what is unpacked when the command line does not: more than all layers of a
// sandbox that llmsandbox itself makes.
const (
	defaultMaxFiles = 2 << 20
	defaultMaxBytes = 32 << 30
)

// unpack unpacks the tar stream on stdin into a directory that is empty or missing.
func unpack(args []string) error {
	usage := errors.New("usage: llmsandbox-agent unpack DIR [--max-files N] [--max-bytes N]")
	if len(args)%2 == 0 {
		return usage
	}
	maxFiles, maxBytes := int64(defaultMaxFiles), int64(defaultMaxBytes)
	to := map[string]*int64{"--max-files": &maxFiles, "--max-bytes": &maxBytes}
	for flags := args[1:]; len(flags) > 0; flags = flags[2:] {
		limit := to[flags[0]]
		if limit == nil {
			return usage
		}
		n, err := strconv.ParseInt(flags[1], 10, 64)
		if err != nil || n < 1 {
			return fmt.Errorf("flag %s: %q is not a number from 1 on", flags[0], flags[1])
		}
		*limit = n
	}
	return untar.Layers(os.Stdin, args[0], maxFiles, maxBytes)
}
