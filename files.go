package llmsandbox

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"math"
	"time"

	"github.com/llmsandbox/llmsandbox/internal/agentclient"
	"github.com/llmsandbox/llmsandbox/internal/agentlink"
	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// A FileInfo describes a file in the sandbox. Symbolic links are not followed.
type FileInfo struct {
	Name    string      // base name
	Size    int64       // bytes
	Mode    fs.FileMode // type and permission bits
	ModTime time.Time
	Link    string // target of a symbolic link
}

// IsDir tells whether it is a directory.
func (i FileInfo) IsDir() bool { return i.Mode.IsDir() }

// Paths in the methods below are the sandbox's own; a relative one is below its
// working directory. What is missing fails with fs.ErrNotExist, what is forbidden with
// fs.ErrPermission, and what is there already with fs.ErrExist.

// Stat describes a file.
func (s *Sandbox) Stat(ctx context.Context, path string) (FileInfo, error) {
	return file(ctx, s, "stat", path, func(c *agentclient.Client) (FileInfo, error) {
		info, err := c.Stat(ctx, path)
		return fileInfo(info), err
	})
}

// ListDir lists a directory, sorted by name. A directory with more entries than one
// listing carries fails rather than being cut.
func (s *Sandbox) ListDir(ctx context.Context, path string) ([]FileInfo, error) {
	return file(ctx, s, "list", path, func(c *agentclient.Client) ([]FileInfo, error) {
		list, err := c.List(ctx, path)
		if err != nil {
			return nil, err
		}
		if list.Truncated {
			return nil, fmt.Errorf("more than %d entries: %w", len(list.Files), ErrInvalid)
		}
		out := make([]FileInfo, len(list.Files))
		for i, f := range list.Files {
			out[i] = fileInfo(f)
		}
		return out, nil
	})
}

// Mkdir makes a directory and those above it that are missing.
func (s *Sandbox) Mkdir(ctx context.Context, path string) error {
	return fileOnly(ctx, s, "make folder", path, func(c *agentclient.Client) error {
		return c.Mkdir(ctx, path, 0o755, true)
	})
}

// Remove removes a file, or a directory with all below it. It is an error when nothing
// is there.
func (s *Sandbox) Remove(ctx context.Context, path string) error {
	return fileOnly(ctx, s, "remove", path, func(c *agentclient.Client) error {
		return c.Remove(ctx, path, agentclient.RemoveOptions{Recursive: true})
	})
}

// Rename moves a file or directory; an existing file at the target is replaced.
func (s *Sandbox) Rename(ctx context.Context, from, to string) error {
	return fileOnly(ctx, s, "rename", from, func(c *agentclient.Client) error {
		return c.Rename(ctx, from, to)
	})
}

// Chmod sets a file's permission bits.
func (s *Sandbox) Chmod(ctx context.Context, path string, mode fs.FileMode) error {
	return fileOnly(ctx, s, "chmod", path, func(c *agentclient.Client) error {
		return c.Chmod(ctx, path, uint32(mode.Perm()))
	})
}

// maxReadFile bounds what ReadFile keeps in memory.
const maxReadFile = 1 << 30

// ReadFile returns a regular file's content, at most 1 GiB; [Sandbox.ReadFileTo]
// has no such bound.
func (s *Sandbox) ReadFile(ctx context.Context, path string) ([]byte, error) {
	return file(ctx, s, "read", path, func(c *agentclient.Client) ([]byte, error) {
		return c.ReadAll(ctx, path, maxReadFile)
	})
}

// ReadFileTo writes a regular file's content to w and returns its length.
func (s *Sandbox) ReadFileTo(ctx context.Context, path string, w io.Writer) (int64, error) {
	return file(ctx, s, "read", path, func(c *agentclient.Client) (int64, error) {
		return c.ReadFile(ctx, path, w)
	})
}

// ReadFileRange writes to w length bytes of a regular file from an offset on, fewer where the file ends before, and
// returns how many. A length of 0 is all up to the file's end.
func (s *Sandbox) ReadFileRange(ctx context.Context, path string, offset, length int64, w io.Writer) (int64, error) {
	if offset < 0 || length < 0 {
		return 0, fmt.Errorf("read %d bytes of %q from %d on: %w: neither is negative", length, path, offset, ErrInvalid)
	}
	return file(ctx, s, "read", path, func(c *agentclient.Client) (int64, error) {
		return c.ReadRange(ctx, path, uint64(offset), uint64(min(length, math.MaxInt64-offset)), w)
	})
}

// WriteFile creates a regular file, or replaces the contents of an existing one, whose
// permissions it keeps. A new file has mode 0644. Missing parent directories are created. A
// symbolic link at path is an error and not followed. A write that fails leaves what it has
// written. [Sandbox.WriteFileFrom] takes a mode.
func (s *Sandbox) WriteFile(ctx context.Context, path string, data []byte) error {
	return s.WriteFileFrom(ctx, path, bytes.NewReader(data), 0)
}

// WriteFileFrom is WriteFile with the contents of r. A new file has the permission bits of
// mode; 0 means 0644. [Sandbox.Chmod] changes those of an existing file.
func (s *Sandbox) WriteFileFrom(ctx context.Context, path string, r io.Reader, mode fs.FileMode) error {
	return fileOnly(ctx, s, "write", path, func(c *agentclient.Client) error {
		_, err := c.WriteFile(ctx, path, r, agentclient.WriteOptions{Mode: uint32(mode.Perm()), Create: true, Truncate: true, Parents: true})
		return err
	})
}

func fileInfo(i agentproto.FileInfo) FileInfo {
	return FileInfo{
		Name: i.Name, Size: int64(i.Size), Mode: fileMode(i), ModTime: time.UnixMicro(i.MTimeMicros), Link: i.Link,
	}
}

func fileMode(i agentproto.FileInfo) fs.FileMode {
	mode := fs.FileMode(i.Mode & 0o777)
	switch i.Type {
	case agentproto.TypeDir:
		mode |= fs.ModeDir
	case agentproto.TypeSymlink:
		mode |= fs.ModeSymlink
	case agentproto.TypeOther:
		mode |= fs.ModeIrregular
	}
	return mode
}

// A FileEvent is one change of a file.
type FileEvent struct {
	Op   FileOp
	Path string // absolute
	// Dir tells that it is a directory's.
	Dir bool
}

// A FileOp is what happened to a file.
type FileOp string

// What happens to files.
const (
	FileCreated  FileOp = "create"
	FileWritten  FileOp = "write"
	FileRemoved  FileOp = "remove"
	FileRenamed  FileOp = "rename" // it had this path
	FileChmod    FileOp = "chmod"
	FileOverflow FileOp = "overflow" // events were lost: look at the directory again
)

func fileOp(op agentproto.WatchOp) FileOp {
	switch op {
	case agentproto.OpCreate:
		return FileCreated
	case agentproto.OpWrite:
		return FileWritten
	case agentproto.OpRemove:
		return FileRemoved
	case agentproto.OpRename:
		return FileRenamed
	case agentproto.OpChmod:
		return FileChmod
	default: // all the agent says else is that there was more
		return FileOverflow
	}
}

// Watch tells of changes in a directory, with recursive also of those below it, from its return
// on. The events end with the one error that ended the watch: the context's once ctx has ended,
// or ErrLost with the stream into the sandbox. They can be read once; a loop that ends early
// ends the watch, and where there is none, ctx has to.
func (s *Sandbox) Watch(ctx context.Context, path string, recursive bool) (iter.Seq2[FileEvent, error], error) {
	events, err := file(ctx, s, "watch", path, func(c *agentclient.Client) (iter.Seq2[agentproto.WatchEvent, error], error) {
		return c.Watch(ctx, path, recursive)
	})
	if err != nil {
		return nil, err
	}
	return func(yield func(FileEvent, error) bool) {
		for e, err := range events {
			if err != nil {
				yield(FileEvent{}, fmt.Errorf("watch %q in sandbox %s: %w", path, s.ID(), s.link.Explain(ctx, err)))
				return
			}
			if !yield(FileEvent{Op: fileOp(e.Op), Path: e.Path, Dir: e.Dir}, nil) {
				return
			}
		}
	}, nil
}

// file does one file operation over the sandbox's link.
func file[T any](ctx context.Context, s *Sandbox, op, path string, do func(*agentclient.Client) (T, error)) (T, error) {
	return agentlink.Call(ctx, s.link, fmt.Sprintf("%s %q", op, path), do)
}

func fileOnly(ctx context.Context, s *Sandbox, op, path string, do func(*agentclient.Client) error) error {
	_, err := file(ctx, s, op, path, func(c *agentclient.Client) (struct{}, error) { return struct{}{}, do(c) })
	return err
}
