//go:build linux

package files

import (
	"errors"
	"io"
	"math"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
	"github.com/llmsandbox/llmsandbox/internal/guest/untar"
	"github.com/llmsandbox/llmsandbox/internal/tarcheck"
)

func (s *Service) serveTarIn(call *job) error {
	var req agentproto.TarInRequest
	if err := call.Request(&req); err != nil {
		return err
	}
	p, err := s.absolute(req.Dir)
	if err != nil {
		return err
	}
	if err := s.mkdirAll(p, 0o755); err != nil {
		return pathError("make folder", req.Dir, err)
	}
	fd, err := s.open(p, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return pathError("unpack into", req.Dir, err)
	}
	defer unix.Close(fd)
	if err := mayServe(fd); err != nil {
		return pathError("unpack into", req.Dir, err)
	}
	result, err := tarIn(input{call}, fd, &req)
	if member := (*tarcheck.MemberError)(nil); errors.As(err, &member) {
		return pathError("unpack", strings.TrimSuffix(req.Dir, "/")+"/"+member.Name, member.Err)
	}
	if err != nil {
		return pathError("unpack into", req.Dir, err)
	}
	return call.End(result)
}

// tarIn unpacks below a directory that code may have written to, and may write to meanwhile.
func tarIn(r io.Reader, folder int, req *agentproto.TarInRequest) (*agentproto.TarResult, error) {
	var left skipped
	made, err := untar.Unpack(r, folder, untar.Options{
		Options: tarcheck.Options{
			MaxMembers: int64(min(req.MaxFiles, math.MaxInt64)), MaxBytes: int64(min(req.MaxBytes, math.MaxInt64)), Links: req.Links,
			Skip: func(name string, why error) { left.add(name, reason(why)) },
		},
		Replace: true,
		// Not O_NOFOLLOW, which makes a link look like a file: beneath refuses it as a link.
		Open: func(at int, name string) (int, error) {
			return openat2(at, name, unix.O_PATH|unix.O_DIRECTORY, 0, beneath)
		},
	})
	if err == nil {
		// What follows the archive's end is padding that the sender still writes.
		_, err = io.Copy(io.Discard, r)
	}
	return &agentproto.TarResult{Files: uint64(made.Files), Bytes: uint64(made.Bytes), Skipped: left}, err
}
