//go:build linux

package files

import (
	"io"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// input and output are a call's byte channels.
type input struct{ call channels }

func (i input) Read(p []byte) (int, error) { return i.call.Read(agentproto.ChanIn, p) }

type output struct{ call channels }

func (o output) Write(p []byte) (int, error) { return o.call.Write(agentproto.ChanOut, p) }

// channels is a call, or one that works on files.
type channels interface {
	Read(agentproto.Channel, []byte) (int, error)
	Write(agentproto.Channel, []byte) (int, error)
}

func (s *Service) serveRead(call *job) error {
	var req agentproto.ReadRequest
	if err := call.Request(&req); err != nil {
		return err
	}
	fd, err := s.openToRead(&req)
	if err != nil {
		return pathError("read", req.Path, err)
	}
	f := os.NewFile(uintptr(fd), req.Path)
	defer f.Close()
	st, err := regular(fd)
	if err != nil {
		return pathError("read", req.Path, err)
	}
	const maxOffset = 1<<63 - 1
	if req.Offset > maxOffset || req.Length > maxOffset-req.Offset {
		return agentproto.Errorf(agentproto.CodeBadRequest, "read %q: offset %d and length %d are beyond any file", req.Path, req.Offset, req.Length)
	}
	if err := call.Send(fileInfo(path.Base(req.Path), &st)); err != nil {
		return err
	}
	length := int64(req.Length)
	if length == 0 {
		length = maxOffset - int64(req.Offset)
	}
	if _, err := io.CopyBuffer(output{call}, onlyReader{io.NewSectionReader(f, int64(req.Offset), length)}, make([]byte, agentproto.MaxFrame)); err != nil {
		return pathError("read", req.Path, err)
	}
	if err := call.CloseWrite(agentproto.ChanOut); err != nil {
		return err
	}
	return call.End(&agentproto.Empty{})
}

// openToRead opens the file of a request.
func (s *Service) openToRead(req *agentproto.ReadRequest) (int, error) {
	const flags = unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY
	if req.Below == "" {
		p, err := s.absolute(req.Path)
		if err != nil {
			return -1, err
		}
		return s.open(p, flags, 0)
	}
	if _, err := s.absolute(req.Path); err != nil {
		return -1, err
	}
	directory, err := s.absolute(req.Below)
	if err != nil {
		return -1, err
	}
	dir, err := s.open(strings.TrimRight(directory, "/"), unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(dir)
	return openat2(dir, req.Path, flags|unix.O_NOFOLLOW, 0, beneath)
}

// onlyReader and onlyWriter hide what would make io.CopyBuffer leave its buffer aside.
type onlyReader struct{ io.Reader }
type onlyWriter struct{ io.Writer }

func (s *Service) serveWrite(call *job) error {
	var req agentproto.WriteRequest
	if err := call.Request(&req); err != nil {
		return err
	}
	if req.Offset > 1<<62 {
		return agentproto.Errorf(agentproto.CodeBadRequest, "write %q: offset %d is beyond any file", req.Path, req.Offset)
	}
	f, err := s.create(&req)
	if err != nil {
		return pathError("write", req.Path, err)
	}
	defer f.Close()
	w := io.NewOffsetWriter(f, int64(req.Offset))
	if _, err := io.CopyBuffer(onlyWriter{w}, input{call}, make([]byte, agentproto.MaxFrame)); err != nil {
		return pathError("write", req.Path, err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return pathError("write", req.Path, err)
	}
	return call.End(fileInfo(path.Base(f.Name()), &st))
}

// create opens a regular file for writing as a request asks. A symbolic link at
// its place is not followed.
func (s *Service) create(req *agentproto.WriteRequest) (*os.File, error) {
	p, err := s.absolute(req.Path)
	if err != nil {
		return nil, err
	}
	dir, _, err := split(p)
	if err != nil {
		return nil, err
	}
	mode := req.Mode & 0o777
	if mode == 0 {
		mode = 0o644
	}
	fd, err := s.openToWrite(p, mode, req)
	if err == unix.ENOENT && req.Parents {
		if err := s.mkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
		fd, err = s.openToWrite(p, mode, req)
	}
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), p)
	st, err := regular(fd)
	if err == nil && req.Truncate && st.Size > 0 {
		err = unix.Ftruncate(fd, 0)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// openToWrite opens or makes a file whose directory is there.
func (s *Service) openToWrite(path string, mode uint32, req *agentproto.WriteRequest) (int, error) {
	if req.Create {
		fd, err := s.open(path, writeFlags|unix.O_CREAT|unix.O_EXCL, mode)
		if err != unix.EEXIST || req.Exclusive {
			return fd, err
		}
	}
	return s.open(path, writeFlags, 0)
}

const writeFlags = unix.O_WRONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_NOCTTY

// makeDirectory makes a directory and those above it that are missing.
func (s *Service) makeDir(path string) error {
	p, err := s.absolute(path)
	if err != nil {
		return err
	}
	return s.mkdirAll(strings.TrimRight(p, "/"), 0o755)
}

// WriteInline writes small files, making missing directories. What was written before
// a failure stays.
func (s *Service) WriteInline(files []agentproto.InlineFile) error {
	s.turns.take()
	defer s.turns.give()
	for _, file := range files {
		if strings.HasSuffix(file.Path, "/") {
			// A program that needs it finds it missing. That is no reason not to start.
			_ = s.makeDir(file.Path)
			continue
		}
		mode := file.Mode & 0o777
		if mode == 0 {
			mode = 0o600
		}
		f, err := s.create(&agentproto.WriteRequest{Path: file.Path, Mode: mode, Create: true, Truncate: true, Parents: true})
		if err != nil {
			return pathError("write", file.Path, err)
		}
		_, err = f.Write(file.Data)
		if closeErr := f.Close(); err == nil {
			err = closeErr
		}
		if err != nil {
			return pathError("write", file.Path, err)
		}
	}
	return nil
}
