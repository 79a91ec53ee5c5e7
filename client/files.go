package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"sync"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/apitypes"
)

// Paths in the methods below are the sandbox's own; a relative one is below its working directory. What is missing fails with fs.ErrNotExist, what is
// forbidden with fs.ErrPermission, and what is there already with fs.ErrExist.

// Stat describes a file. Symbolic links are not followed.
func (s *Sandbox) Stat(ctx context.Context, path string) (llmsandbox.FileInfo, error) {
	var e apitypes.FileEntry
	if err := s.file(ctx, http.MethodGet, "/stat", url.Values{"path": {path}}, &e); err != nil {
		return llmsandbox.FileInfo{}, err
	}
	return fileInfo(&e)
}

// ListDir lists a directory, sorted by name. A directory with more entries than one listing carries fails rather than being cut.
func (s *Sandbox) ListDir(ctx context.Context, path string) ([]llmsandbox.FileInfo, error) {
	var list apitypes.Files
	if err := s.file(ctx, http.MethodGet, "/list", url.Values{"path": {path}}, &list); err != nil {
		return nil, err
	}
	out := make([]llmsandbox.FileInfo, len(list.Entries))
	for i := range list.Entries {
		var err error
		if out[i], err = fileInfo(&list.Entries[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Mkdir makes a directory and those above it that are missing.
func (s *Sandbox) Mkdir(ctx context.Context, path string) error {
	return s.file(ctx, http.MethodPost, "/mkdir", url.Values{"path": {path}}, nil)
}

// Remove removes a file, or a directory with all below it. It is an error when nothing is there.
func (s *Sandbox) Remove(ctx context.Context, path string) error {
	return s.file(ctx, http.MethodDelete, "", url.Values{"path": {path}}, nil)
}

// Rename moves a file or directory; an existing file at the target is replaced.
func (s *Sandbox) Rename(ctx context.Context, from, to string) error {
	return s.file(ctx, http.MethodPost, "/rename", url.Values{"path": {from}, "to": {to}}, nil)
}

// file does something with a file; v gets the answer, nil is for what has none.
func (s *Sandbox) file(ctx context.Context, method, path string, query url.Values, v any) error {
	return s.ask(ctx, &request{method: method, path: "/files" + path, query: query}, v)
}

// maxReadFile bounds what ReadFile keeps in memory.
const maxReadFile = 1 << 30

// ReadFile returns a regular file's content, at most 1 GiB; [Sandbox.ReadFileTo] has no such bound.
func (s *Sandbox) ReadFile(ctx context.Context, path string) ([]byte, error) {
	content := limited{room: maxReadFile}
	if _, err := s.ReadFileTo(ctx, path, &content); err != nil {
		return nil, err
	}
	return content.kept.Bytes(), nil
}

// limited is a buffer that takes no more than it has room for, whatever a server sends.
type limited struct {
	kept bytes.Buffer
	room int
}

func (l *limited) Write(p []byte) (int, error) {
	if len(p) > l.room-l.kept.Len() {
		return 0, fmt.Errorf("%w: it has more than %d bytes: use ReadFileTo", llmsandbox.ErrTooLarge, l.room)
	}
	return l.kept.Write(p)
}

// ReadFileTo writes a regular file's content to w and returns how much that is. It fails where not all of the file has come.
func (s *Sandbox) ReadFileTo(ctx context.Context, path string, w io.Writer) (int64, error) {
	r, err := s.request(http.MethodGet, "/files")
	if err != nil {
		return 0, err
	}
	r.query, r.accept = url.Values{"path": {path}}, fileType
	n, _, err := s.client.download(ctx, r, path, func(res *http.Response) (int64, error) { return io.Copy(w, res.Body) })
	return n, err
}

// ReadFileRange writes to w length bytes of a regular file from an offset on, fewer where the file ends before, and returns how many. A length of 0 is
// all up to the file's end.
func (s *Sandbox) ReadFileRange(ctx context.Context, path string, offset, length int64, w io.Writer) (int64, error) {
	if offset < 0 || length < 0 {
		return 0, fmt.Errorf("read %d bytes of %q from %d on: %w: neither is negative", length, path, offset, llmsandbox.ErrInvalid)
	}
	r, err := s.request(http.MethodGet, "/files")
	if err != nil {
		return 0, err
	}
	r.query, r.accept, r.part = url.Values{"path": {path}}, fileType, fmt.Sprintf("bytes=%d-", offset)
	r.want, r.orOK = http.StatusPartialContent, true
	most := int64(math.MaxInt64)
	if length > 0 {
		most = length
		r.part += strconv.FormatInt(offset+min(length, math.MaxInt64-offset)-1, 10)
	}
	n, _, err := s.client.download(ctx, r, path, func(res *http.Response) (int64, error) {
		if res.StatusCode == http.StatusOK { // of a link, it is the whole file
			if _, err := io.CopyN(io.Discard, res.Body, offset); err == io.EOF { //nolint:errorlint // it is this very value
				return 0, nil
			} else if err != nil {
				return 0, err
			}
		}
		return io.Copy(w, io.LimitReader(res.Body, most))
	})
	if refused, ok := errors.AsType[*Error](err); ok && refused.Status == http.StatusRequestedRangeNotSatisfiable {
		return 0, nil // the file ends before
	}
	return n, err
}

// download sends a request for content of the type that it accepts, and has take read it. It fails where not all of the content has come.
func (c *Client) download(ctx context.Context, r *request, path string, take func(*http.Response) (int64, error)) (n int64, trailer http.Header, err error) {
	answer, err := c.send(ctx, r)
	if err != nil {
		return 0, nil, err
	}
	body := answer.Body
	defer func() { _ = body.Close() }() // all of it was read, or is not wanted
	if kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type")); kind != r.accept || !isWhole(answer) {
		return 0, nil, fmt.Errorf("read %q: %w", path, malformed("it is no content that ends by itself but %q: is something between that changes it?", cut(kind, maxLocation)))
	}
	from := &noted{r: body}
	answer.Body = io.NopCloser(from)
	n, err = take(answer)
	switch {
	case from.err != nil:
		return n, nil, fmt.Errorf("read %q: %w", path, r.failed(ctx, from.err))
	case err != nil:
		return n, nil, fmt.Errorf("read %q: %w", path, err)
	}
	return n, answer.Trailer, nil
}

// A noted reader keeps the error that it fails with. Once stop is called it reads no more.
type noted struct {
	r io.Reader

	mu      sync.Mutex
	err     error
	stopped bool
}

// errStopped ends the reading of input that is not needed any more.
var errStopped = errors.New("the request has ended")

func (n *noted) Read(p []byte) (int, error) {
	n.mu.Lock()
	stopped := n.stopped
	n.mu.Unlock()
	if stopped {
		return 0, errStopped
	}
	read, err := n.r.Read(p)
	if err != nil && err != io.EOF { //nolint:errorlint // it is this very value that means the end
		n.mu.Lock()
		n.err = err
		n.mu.Unlock()
	}
	return read, err
}

// stop returns the error that the reader has failed with.
func (n *noted) stop() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.stopped = true
	return n.err
}

// WriteFile creates a regular file, or replaces the contents of an existing one, whose permissions it keeps. A new file has mode 0644. Missing parent
// directories are created. A symbolic link at path is an error and not followed. A write that fails leaves what it has written. [Sandbox.WriteFileFrom]
// takes a mode.
func (s *Sandbox) WriteFile(ctx context.Context, path string, data []byte) error {
	if data == nil {
		data = []byte{}
	}
	return s.ask(ctx, &request{method: http.MethodPut, path: "/files", query: url.Values{"path": {path}}, content: data}, nil)
}

// WriteFileFrom is WriteFile with the contents of r. A new file has the permission bits of mode; 0 means 0644. When it fails, r may be read until
// its Read returns.
func (s *Sandbox) WriteFileFrom(ctx context.Context, path string, r io.Reader, mode fs.FileMode) error {
	req, err := s.request(http.MethodPut, "/files")
	if err != nil {
		return err
	}
	req.query, req.want = url.Values{"path": {path}}, http.StatusNoContent
	if mode.Perm() != 0 {
		req.query.Set("mode", fmt.Sprintf("%04o", mode.Perm()))
	}
	return s.client.upload(ctx, req, path, r, nil)
}

// upload sends a request with the content of a reader; v gets the answer, nil is for what has none.
func (c *Client) upload(ctx context.Context, r *request, path string, content io.Reader, v any) error {
	from := &noted{r: content}
	r.upload = from
	err := c.call(ctx, r, v)
	if readErr := from.stop(); err != nil && readErr != nil {
		return fmt.Errorf("write %q: read its content: %w", path, readErr)
	}
	return err
}

// fileInfo is what the library has of a file that the API describes.
func fileInfo(e *apitypes.FileEntry) (llmsandbox.FileInfo, error) {
	mode, err := strconv.ParseUint(e.Mode, 8, 32)
	if err != nil {
		return llmsandbox.FileInfo{}, malformed("the mode %q of a file", cut(e.Mode, maxLocation))
	}
	i := llmsandbox.FileInfo{Name: e.Name, Size: e.Size, Mode: fs.FileMode(mode) & fs.ModePerm, ModTime: e.Modified, Link: e.Link}
	switch e.Type {
	case "file":
	case "directory":
		i.Mode |= fs.ModeDir
	case "link":
		i.Mode |= fs.ModeSymlink
	default:
		i.Mode |= fs.ModeIrregular
	}
	return i, nil
}
