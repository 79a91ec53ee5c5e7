package llmsandbox

import (
	"context"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/agentclient"
	"github.com/llmsandbox/llmsandbox/internal/transfer"
)

// A CopyResult tells what a copy did, also when it failed halfway.
type CopyResult struct {
	Files int64 // regular files copied
	Bytes int64 // bytes of content
	// Skipped names what was left out (links, special files, unsafe names), each
	// with its reason, at most 100 of them.
	Skipped []string
}

// CopyIn copies a file or directory of the host to a path in the sandbox; missing
// directories above it are made. A file becomes path, or lies in it when that is a directory
// or ends in a slash; a directory's content becomes that of the path. A hostPath that is
// a symbolic link is followed; links below it are left out and reported; a FIFO,
// socket or device refuses the whole copy before anything is written. A link at path
// is not followed: a file takes its place, a directory is refused. Of the permission bits
// read, write and execute are kept, others' write permission is not, and file times
// are not. A copy ends with an error after 4 GiB or a million files; what was copied
// by then stays.
//
// It fails with fs.ErrNotExist when the source is missing, with fs.ErrPermission
// where the sandbox's code may not write, with ErrUnsafePath when a component of the
// sandbox's path is "..", and with ErrTooLarge at a limit.
func (s *Sandbox) CopyIn(ctx context.Context, hostPath, path string) (CopyResult, error) {
	return s.copy(ctx, func(c *agentclient.Client) (transfer.Result, error) {
		return transfer.CopyIn(ctx, c, hostPath, path, transfer.Options{})
	})
}

// CopyOut copies a file or directory of the sandbox to the host. A file becomes
// hostPath, or lies in it when that is a directory or ends in a slash; a directory comes to
// lie in hostPath under its own name. Missing directories are made. What comes out is
// hostile: links, special files and unsafe names are left out and reported, and
// setuid and the like are dropped. Links on the host, at hostPath or where something
// of the directory goes, are not followed: a file takes their place, a directory is refused
// or left out. A file that is there already is replaced, at once when the new one is
// whole. File times are not kept. A copy ends with an error after 4 GiB or a million
// files; what was copied by then stays.
//
// It fails with fs.ErrNotExist when the source is missing, with ErrNoSafeContent
// when nothing there may be copied, with fs.ErrExist when a directory is in a file's
// place or the other way round, with ErrUnsafePath when a component of the sandbox's
// path is "..", and with ErrTooLarge at a limit.
func (s *Sandbox) CopyOut(ctx context.Context, path, hostPath string) (CopyResult, error) {
	path = withName(path, s.machine.Guest().Workdir)
	return s.copy(ctx, func(c *agentclient.Client) (transfer.Result, error) {
		return transfer.CopyOut(ctx, c, path, hostPath, transfer.Options{})
	})
}

// TarOut writes a file or directory of the sandbox to w as a tar archive, of which the members' names begin with name;
// an empty one is the path's own. It has regular files and directories with safe names only, what else there is is left out
// and reported as by CopyOut, and the errors and limits are the same. w may have got a part of the archive when it fails.
func (s *Sandbox) TarOut(ctx context.Context, path, name string, w io.Writer) (CopyResult, error) {
	path = withName(path, s.machine.Guest().Workdir)
	return s.copy(ctx, func(c *agentclient.Client) (transfer.Result, error) {
		return transfer.TarOut(ctx, c, path, name, w, transfer.Options{})
	})
}

// TarIn unpacks a tar archive that it reads from r into a directory of the sandbox, which is made with those above it if it is
// missing. Files take the place of those that are there; links and unsafe names are left out and reported, and none that is
// there is followed. It happens in the sandbox, with the rights of its code. The errors and limits are those of CopyIn; what was unpacked
// when it fails stays. A Read of r that waits is not interrupted by the end of ctx.
func (s *Sandbox) TarIn(ctx context.Context, r io.Reader, path string) (CopyResult, error) {
	return s.copy(ctx, func(c *agentclient.Client) (transfer.Result, error) {
		return transfer.TarIn(ctx, c, r, path, transfer.Options{})
	})
}

// withName returns a path that ends in a name of its own: workdir for ".".
func withName(p, workdir string) string {
	if p != "" && path.Clean(p) == "." && !strings.Contains(p, "..") {
		return workdir
	}
	return p
}

func (s *Sandbox) copy(ctx context.Context, do func(*agentclient.Client) (transfer.Result, error)) (CopyResult, error) {
	if err := s.link.Alive(); err != nil {
		return CopyResult{}, err
	}
	client, err := s.link.Client(ctx)
	if err != nil {
		return CopyResult{}, err
	}
	r, err := do(client)
	if err != nil {
		err = fmt.Errorf("sandbox %s: %w", s.ID(), s.link.Explain(ctx, err))
	}
	return CopyResult{Files: r.Files, Bytes: r.Bytes, Skipped: r.Skipped}, err
}
