//go:build linux

package files

import (
	"errors"
	"io"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

const (
	// maxRemoveDepth is how many directories a removal holds open at once. What is
	// deeper is moved up to the tree's top first, so that no depth is too deep.
	maxRemoveDepth = 32
	// maxRounds bounds how often one removal lists a directory, against code that
	// makes files as fast as they are removed.
	maxRounds = 1 << 20
)

func (s *Service) serveRemove(call *job) error {
	var req agentproto.RemoveRequest
	if err := call.Request(&req); err != nil {
		return err
	}
	p, err := s.absolute(req.Path)
	if err != nil {
		return err
	}
	if err = s.remove(p, req.Recursive, call.Done()); err != nil && !(req.Missing && errors.Is(err, unix.ENOENT)) {
		return pathError("remove", req.Path, err)
	}
	return call.End(&agentproto.Empty{})
}

// RemoveAll removes paths with all below them; what is missing is no error. It
// tries them all and returns the failures together.
func (s *Service) RemoveAll(paths []string) error {
	s.turns.take()
	defer s.turns.give()
	return s.removeAll(paths)
}

// removeAll is RemoveAll for who has a turn.
func (s *Service) removeAll(paths []string) error {
	var failed []error
	for _, path := range paths {
		p, err := s.absolute(path)
		if err == nil {
			err = s.remove(p, true, nil)
		}
		if err != nil && !errors.Is(err, unix.ENOENT) {
			failed = append(failed, pathError("remove", path, err))
		}
	}
	return errors.Join(failed...)
}

func (s *Service) remove(p string, recursive bool, stop <-chan struct{}) error {
	dir, base, err := s.parent(p)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	err = unix.Unlinkat(dir, base, 0)
	if err == unix.EACCES {
		// gVisor says so in a directory that must not be written even of what is not there.
		var st unix.Stat_t
		if unix.Fstatat(dir, base, &st, unix.AT_SYMLINK_NOFOLLOW) == unix.ENOENT {
			return unix.ENOENT
		}
	}
	if err != unix.EISDIR {
		return err
	}
	err = unix.Unlinkat(dir, base, unix.AT_REMOVEDIR)
	if err != unix.ENOTEMPTY || !recursive {
		return err
	}
	r := remover{turns: s.turns, top: -1, stop: stop}
	return r.directory(dir, base, 0)
}

// remover removes one tree.
type remover struct {
	turns  turns
	top    int // descriptor of the tree's top directory
	moved  int // directories moved up there
	rounds int
	stop   <-chan struct{}
}

// directory removes a directory with all below it.
func (r *remover) directory(parent int, name string, depth int) error {
	fd, err := openToRemove(parent, name)
	if err == unix.ENOTDIR || err == unix.ELOOP {
		return missingIsFine(unix.Unlinkat(parent, name, 0)) // exchanged meanwhile
	}
	if err != nil {
		return missingIsFine(err)
	}
	dir := os.NewFile(uintptr(fd), name)
	defer dir.Close()
	if depth == 0 {
		r.top = fd
	}
	for {
		if err := r.empty(dir, fd, depth); err != nil {
			return err
		}
		err := unix.Unlinkat(parent, name, unix.AT_REMOVEDIR)
		if err != unix.ENOTEMPTY {
			return missingIsFine(err)
		}
		if _, err := dir.Seek(0, io.SeekStart); err != nil {
			return err
		}
	}
}

// empty removes what one listing of a directory finds.
func (r *remover) empty(dir *os.File, fd, depth int) error {
	for {
		if r.rounds++; r.rounds > maxRounds {
			return unix.ENOTEMPTY
		}
		select {
		case <-r.stop:
			return agentproto.Errorf(agentproto.CodeCancelled, "the removal was cancelled")
		default:
		}
		r.turns.yield()
		names, err := dir.Readdirnames(512)
		for _, name := range names {
			if err := r.entry(fd, name, depth); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (r *remover) entry(dir int, name string, depth int) error {
	err := unix.Unlinkat(dir, name, 0)
	if err != unix.EISDIR {
		return missingIsFine(err)
	}
	if depth < maxRemoveDepth {
		return r.directory(dir, name, depth+1)
	}
	err = unix.Unlinkat(dir, name, unix.AT_REMOVEDIR)
	if err != unix.ENOTEMPTY {
		return missingIsFine(err)
	}
	return missingIsFine(r.moveUp(dir, name))
}

// moveUp moves a directory to the tree's top, where the next listing finds it. Should that
// replace something there, it is something to be removed. Not RENAME_NOREPLACE, which
// gVisor has not everywhere.
func (r *remover) moveUp(dir int, name string) error {
	writable := false
	for range 1000 {
		r.moved++
		err := unix.Renameat(dir, name, r.top, ".removed-"+strconv.Itoa(r.moved))
		switch {
		case err == unix.EEXIST, err == unix.ENOTEMPTY, err == unix.ENOTDIR, err == unix.EISDIR:
			// The name is taken by what cannot be replaced.
		case err == unix.EACCES && !writable:
			// A directory that changes its parent must itself be writable.
			fd, err := openToRemove(dir, name)
			if err == unix.ENOTDIR || err == unix.ELOOP {
				return nil // exchanged meanwhile: the next listing finds what it is now
			}
			if err != nil {
				return err
			}
			unix.Close(fd)
			writable = true
		default:
			return err
		}
	}
	return unix.EEXIST
}

// openDirectory opens a directory for listing and removing. One whose mode forbids that to
// its owner is made to allow it; who is not the owner gets the kernel's refusal.
func openToRemove(parent int, name string) (int, error) {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW
	path, err := openat2(parent, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0, beneath)
	if err != nil {
		return -1, err
	}
	defer unix.Close(path)
	var st unix.Stat_t
	if err := unix.Fstat(path, &st); err != nil {
		return -1, err
	}
	if st.Mode&0o700 != 0o700 {
		if err := chmod(path, st.Mode&0o777|0o700); err != nil && err != unix.EPERM {
			return -1, err
		}
	}
	return openat2(parent, name, flags, 0, beneath)
}

func missingIsFine(err error) error {
	if err == unix.ENOENT {
		return nil
	}
	return err
}
