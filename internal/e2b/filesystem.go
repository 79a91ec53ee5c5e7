package e2b

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/agentlink"
	"github.com/llmsandbox/llmsandbox/internal/agentproto"
	"github.com/llmsandbox/llmsandbox/internal/e2b/envd/filesystem"
)

const (
	// maxListed bounds the entries of one answer, which is made in memory.
	maxListed = 20000
	// maxSteps bounds how often one request asks the sandbox what is on the way to where links lead.
	maxSteps = 20000
	// maxLinks is how many links lead to a file at most, as for the kernel.
	maxLinks = 40
)

// A resolver finds where links lead, for one request.
type resolver struct {
	sandbox *llmsandbox.Sandbox
	left    int
	known   map[string]llmsandbox.FileInfo
	missing string // the first name that is not there, after fs.ErrNotExist
}

func newResolver(sb *llmsandbox.Sandbox) *resolver {
	return &resolver{sandbox: sb, left: maxSteps, known: map[string]llmsandbox.FileInfo{}}
}

func (r *resolver) stat(ctx context.Context, p string) (llmsandbox.FileInfo, error) {
	if i, ok := r.known[p]; ok {
		return i, nil
	}
	if r.left--; r.left < 0 {
		return llmsandbox.FileInfo{}, refusal(http.StatusRequestEntityTooLarge, fmt.Sprintf("links lead over more than %d names: ask for less at once", maxSteps))
	}
	i, err := r.sandbox.Stat(ctx, p)
	if err == nil {
		r.known[p] = i
	}
	return i, err
}

// resolve is where an absolute path leads, without links, and what is there. With fs.ErrNotExist it is where that would be.
func (r *resolver) resolve(ctx context.Context, p string) (real string, i llmsandbox.FileInfo, err error) {
	real, links := "/", 0
	for rest := p; rest != ""; {
		var name string
		switch name, rest, _ = strings.Cut(rest, "/"); name {
		case "", ".":
			continue
		case "..":
			real = path.Dir(real)
			continue
		}
		next := path.Join(real, name)
		if i, err = r.stat(ctx, next); errors.Is(err, fs.ErrNotExist) {
			r.missing = next
			return path.Join(next, rest), i, err
		}
		switch {
		case err != nil:
			return "", i, err
		case i.Mode&fs.ModeSymlink == 0:
			real = next
			continue
		}
		if links++; links > maxLinks {
			return "", i, agentproto.Errorf(agentproto.CodeUnsafe, "path '%s': too many links", p)
		}
		if path.IsAbs(i.Link) {
			real = "/"
		}
		rest = i.Link + "/" + rest
	}
	i, err = r.stat(ctx, real)
	return real, i, err
}

// entry describes what is at an absolute path. Its owner is always the user: SDKs know no other, and what the agent tells has none.
func (r *resolver) entry(ctx context.Context, p string, i llmsandbox.FileInfo) (*filesystem.EntryInfo, error) {
	e := &filesystem.EntryInfo{
		Name: valid(path.Base(p)), Path: valid(p), Type: fileType(i.Mode), Size: i.Size, Mode: uint32(i.Mode.Perm()), Permissions: i.Mode.String(),
		Owner: ordinaryUser, Group: ordinaryUser, ModifiedTime: timestamppb.New(i.ModTime),
	}
	if i.Mode&fs.ModeSymlink == 0 {
		return e, nil
	}
	real, to, err := r.resolve(ctx, p)
	switch {
	case agentlink.Code(err) != 0: // it leads nowhere
		real, e.Type = p, filesystem.FileType_FILE_TYPE_UNSPECIFIED
	case err != nil:
		return nil, err
	default:
		e.Type, e.Mode = fileType(to.Mode), uint32(to.Mode.Perm())
	}
	real = valid(real)
	e.SymlinkTarget = &real
	return e, nil
}

func fileType(mode fs.FileMode) filesystem.FileType {
	switch {
	case mode.IsRegular():
		return filesystem.FileType_FILE_TYPE_FILE
	case mode.IsDir():
		return filesystem.FileType_FILE_TYPE_DIRECTORY
	}
	return filesystem.FileType_FILE_TYPE_UNSPECIFIED
}

// A fileService answers for the files of sandboxes.
type fileService struct{ *Server }

// onPath serves a request about a path.
func onPath[In, Out any](
	ctx context.Context, f fileService, req *connect.Request[In], p string, do func(t *target, r *resolver, p string) (*Out, error),
) (*connect.Response[Out], error) {
	t := targetOf(ctx)
	p, err := t.path(userOf(req.Header()), p)
	if err != nil {
		return nil, f.rpcError(ctx, fault(err))
	}
	out, err := do(t, newResolver(t.sandbox), p)
	if err != nil {
		return nil, f.rpcError(ctx, fault(err))
	}
	return connect.NewResponse(out), nil
}

// Stat serves the procedure of that name.
func (f fileService) Stat(ctx context.Context, req *connect.Request[filesystem.StatRequest]) (*connect.Response[filesystem.StatResponse], error) {
	return onPath(ctx, f, req, req.Msg.GetPath(), func(_ *target, r *resolver, p string) (*filesystem.StatResponse, error) {
		e, err := r.entryAt(ctx, p)
		return &filesystem.StatResponse{Entry: e}, err
	})
}

func (r *resolver) entryAt(ctx context.Context, p string) (*filesystem.EntryInfo, error) {
	i, err := r.stat(ctx, p)
	if err != nil {
		return nil, err
	}
	return r.entry(ctx, p, i)
}

// MakeDir serves the procedure of that name.
func (f fileService) MakeDir(ctx context.Context, req *connect.Request[filesystem.MakeDirRequest]) (*connect.Response[filesystem.MakeDirResponse], error) {
	return onPath(ctx, f, req, req.Msg.GetPath(), func(t *target, r *resolver, p string) (*filesystem.MakeDirResponse, error) {
		real, i, err := r.resolve(ctx, p)
		switch {
		case err == nil && i.IsDir():
			return nil, refusal(http.StatusConflict, fmt.Sprintf("directory already exists: %s", p))
		case err == nil:
			return nil, refusal(http.StatusBadRequest, fmt.Sprintf("path already exists but it is not a directory: %s", p))
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
		seen := t.live.watchers.expect(ctx, r, real)
		if err := t.sandbox.Mkdir(ctx, real); err != nil {
			return nil, err
		}
		seen(filesystem.EventType_EVENT_TYPE_CREATE)
		e, err := r.entryAt(ctx, p)
		return &filesystem.MakeDirResponse{Entry: e}, err
	})
}

// Move serves the procedure of that name.
func (f fileService) Move(ctx context.Context, req *connect.Request[filesystem.MoveRequest]) (*connect.Response[filesystem.MoveResponse], error) {
	return onPath(ctx, f, req, req.Msg.GetSource(), func(t *target, r *resolver, from string) (*filesystem.MoveResponse, error) {
		to, err := t.path(userOf(req.Header()), req.Msg.GetDestination())
		if err != nil {
			return nil, err
		}
		if _, err := t.sandbox.Stat(ctx, from); err != nil {
			return nil, err
		}
		left, came := t.live.watchers.expect(ctx, r, from), t.live.watchers.expect(ctx, r, to)
		if err := t.sandbox.Mkdir(ctx, path.Dir(to)); err != nil {
			return nil, err
		}
		event, err := f.move(ctx, t, from, to)
		if err != nil {
			return nil, err
		}
		if from != to { // then nothing has moved
			left(event)
			came(filesystem.EventType_EVENT_TYPE_CREATE)
		}
		e, err := newResolver(t.sandbox).entryAt(ctx, to)
		return &filesystem.MoveResponse{Entry: e}, err
	})
}

// move moves a file, and returns the event by which it leaves where it was. Directories that clients take for parts of one disk may be disks of their own:
// between these a program of the sandbox moves it.
func (f fileService) move(ctx context.Context, t *target, from, to string) (filesystem.EventType, error) {
	err := t.sandbox.Rename(ctx, from, to)
	if agentlink.Code(err) != agentproto.CodeUnsafe {
		return filesystem.EventType_EVENT_TYPE_RENAME, err
	}
	const copied = filesystem.EventType_EVENT_TYPE_REMOVE
	if i, err := t.sandbox.Stat(ctx, to); err == nil && i.IsDir() {
		return copied, refusal(http.StatusBadRequest, fmt.Sprintf("path '%s' is a directory", valid(to)))
	}
	if err := f.service.Admit(ctx, t.project); err != nil {
		return copied, err
	}
	res, runErr := t.sandbox.Exec(ctx, []string{"mv", "-f", from, to}, nil)
	switch {
	case errors.Is(runErr, fs.ErrNotExist): // there is no such program
		return copied, err
	case runErr == nil && res.Status != llmsandbox.StatusOK:
		return copied, refusal(http.StatusBadRequest, fmt.Sprintf("'%s' could not be moved to another disk: %s", valid(from), valid(strings.TrimSpace(res.Stderr))))
	}
	return copied, runErr
}

// ListDir serves the procedure of that name.
func (f fileService) ListDir(ctx context.Context, req *connect.Request[filesystem.ListDirRequest]) (*connect.Response[filesystem.ListDirResponse], error) {
	return onPath(ctx, f, req, req.Msg.GetPath(), func(t *target, r *resolver, p string) (*filesystem.ListDirResponse, error) {
		out := &filesystem.ListDirResponse{}
		return out, r.list(ctx, out, p, max(req.Msg.GetDepth(), 1))
	})
}

// list adds the entries of a directory, and of those below it to a depth.
func (r *resolver) list(ctx context.Context, out *filesystem.ListDirResponse, dir string, depth uint32) error {
	files, err := r.sandbox.ListDir(ctx, dir)
	if err != nil {
		return err
	}
	for _, i := range files {
		if len(out.Entries) >= maxListed {
			return refusal(http.StatusRequestEntityTooLarge, fmt.Sprintf("there are more than %d entries: list directories of it, or to a smaller depth", maxListed))
		}
		p := path.Join(dir, i.Name)
		e, err := r.entry(ctx, p, i)
		if err != nil {
			return err
		}
		out.Entries = append(out.Entries, e)
		if !i.IsDir() || depth == 1 {
			continue
		}
		if err := r.list(ctx, out, p, depth-1); err != nil && !errors.Is(err, fs.ErrNotExist) && agentlink.Code(err) != agentproto.CodeNotDir {
			return err // but that it is gone or no directory any more
		}
	}
	return nil
}

// Remove serves the procedure of that name.
func (f fileService) Remove(ctx context.Context, req *connect.Request[filesystem.RemoveRequest]) (*connect.Response[filesystem.RemoveResponse], error) {
	return onPath(ctx, f, req, req.Msg.GetPath(), func(t *target, r *resolver, p string) (*filesystem.RemoveResponse, error) {
		seen := t.live.watchers.expect(ctx, r, p)
		err := t.sandbox.Remove(ctx, p)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, err
		default:
			seen(filesystem.EventType_EVENT_TYPE_REMOVE)
		}
		return &filesystem.RemoveResponse{}, nil
	})
}
