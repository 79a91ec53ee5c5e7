package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/agentclient"
	"github.com/llmsandbox/llmsandbox/internal/agentproto"
	"github.com/llmsandbox/llmsandbox/internal/apitypes"
	"github.com/llmsandbox/llmsandbox/internal/errclass"
	"github.com/llmsandbox/llmsandbox/internal/transfer"
)

// CopyIn copies a file or directory of this machine to a path in the sandbox as [llmsandbox.Sandbox.CopyIn] does.
func (s *Sandbox) CopyIn(ctx context.Context, hostPath, path string) (llmsandbox.CopyResult, error) {
	res, err := transfer.CopyIn(ctx, guest{s}, hostPath, path, transfer.Options{})
	return llmsandbox.CopyResult(res), err
}

// CopyOut copies a file or directory of the sandbox to this machine as [llmsandbox.Sandbox.CopyOut] does. The server is not trusted more than the
// sandbox: nothing is made outside of hostPath. Of what the server has left out, the number is reported.
func (s *Sandbox) CopyOut(ctx context.Context, path, hostPath string) (llmsandbox.CopyResult, error) {
	res, err := transfer.CopyOut(ctx, guest{s}, path, hostPath, transfer.Options{})
	return llmsandbox.CopyResult(res), err
}

// TarOut writes a file or directory of the sandbox to w as a tar archive, of which the members' names begin with name; an empty one is the path's own. It
// is what [llmsandbox.Sandbox.TarOut] writes, if the server is to be trusted. Of what was left out, the number is reported.
func (s *Sandbox) TarOut(ctx context.Context, path, name string, w io.Writer) (llmsandbox.CopyResult, error) {
	res, err := guest{s}.TarOut(ctx, path, name, w)
	return copyResult(res), err
}

// TarIn unpacks a tar archive that it reads from r into a directory of the sandbox as [llmsandbox.Sandbox.TarIn] does. When it fails, r may be read until
// its Read returns.
func (s *Sandbox) TarIn(ctx context.Context, r io.Reader, path string) (llmsandbox.CopyResult, error) {
	res, err := guest{s}.TarIn(ctx, path, r, agentclient.TarLimits{})
	return copyResult(res), err
}

func copyResult(r agentproto.TarResult) llmsandbox.CopyResult {
	return llmsandbox.CopyResult{Files: int64(r.Files), Bytes: int64(r.Bytes), Skipped: r.Skipped}
}

// A guest is a sandbox as package transfer needs it. The server has the limits.
type guest struct{ *Sandbox }

func (g guest) Stat(ctx context.Context, path string) (agentproto.FileInfo, error) {
	i, err := g.Sandbox.Stat(ctx, path)
	info := agentproto.FileInfo{Name: i.Name, Size: uint64(max(i.Size, 0)), Mode: uint32(i.Mode.Perm()), Type: agentproto.TypeOther}
	switch i.Mode.Type() {
	case 0:
		info.Type = agentproto.TypeRegular
	case fs.ModeDir:
		info.Type = agentproto.TypeDir
	case fs.ModeSymlink:
		info.Type = agentproto.TypeSymlink
	}
	return info, agentError(err)
}

// agentError gives an error the class by which package transfer knows it.
func agentError(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errclass.Of(&agentproto.Error{Code: agentproto.CodeNotFound}, err)
	case errors.Is(err, fs.ErrPermission):
		return errclass.Of(&agentproto.Error{Code: agentproto.CodePermission}, err)
	}
	return err
}

func (g guest) TarOut(ctx context.Context, path, name string, w io.Writer) (agentproto.TarResult, error) {
	r, err := g.request(http.MethodGet, "/files/archive")
	if err != nil {
		return agentproto.TarResult{}, err
	}
	r.query, r.accept = url.Values{"path": {path}}, tarType
	if name != "" {
		r.query.Set("name", name)
	}
	return g.client.tarOut(ctx, r, path, w)
}

// tarOut has the archive that a request asks for.
func (c *Client) tarOut(ctx context.Context, r *request, path string, w io.Writer) (agentproto.TarResult, error) {
	_, trailer, err := c.download(ctx, r, path, func(res *http.Response) (int64, error) { return io.Copy(w, res.Body) })
	var result agentproto.TarResult
	if n, _ := strconv.Atoi(trailer.Get(apitypes.SkippedTrailer)); n > 0 {
		result.Skipped = []string{fmt.Sprintf("%d on the server: links, special files, or names or contents that cannot be read", n)}
	}
	return result, err
}

func (g guest) TarIn(ctx context.Context, dir string, content io.Reader, _ agentclient.TarLimits) (agentproto.TarResult, error) {
	r, err := g.request(http.MethodPut, "/files/archive")
	if err != nil {
		return agentproto.TarResult{}, err
	}
	r.query = url.Values{"path": {dir}}
	return g.client.tarIn(ctx, r, dir, content)
}

// tarIn sends an archive.
func (c *Client) tarIn(ctx context.Context, r *request, dir string, content io.Reader) (agentproto.TarResult, error) {
	r.kind = tarType
	var made apitypes.Unpacked
	err := c.upload(ctx, r, dir, content, &made)
	return agentproto.TarResult{Files: uint64(max(made.Files, 0)), Bytes: uint64(max(made.Bytes, 0)), Skipped: made.Skipped}, err
}

// Watch tells of changes in a directory, with recursive also of those below it, from its return on, as [llmsandbox.Sandbox.Watch] does.
func (s *Sandbox) Watch(ctx context.Context, path string, recursive bool) (iter.Seq2[llmsandbox.FileEvent, error], error) {
	r, err := s.request(http.MethodGet, "/files/watch")
	if err != nil {
		return nil, err
	}
	r.query, r.accept = url.Values{"path": {path}, "recursive": {strconv.FormatBool(recursive)}}, eventType
	answer, err := s.client.send(ctx, r)
	if err != nil {
		return nil, fmt.Errorf("watch %q: %w", path, err)
	}
	if kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type")); kind != eventType {
		_ = answer.Body.Close()
		return nil, fmt.Errorf("watch %q: %w", path, malformed("it is no stream of events but %q", cut(kind, maxLocation)))
	}
	return func(yield func(llmsandbox.FileEvent, error) bool) {
		defer func() { _ = answer.Body.Close() }() // which ends the watch
		failed := func(err error) { yield(llmsandbox.FileEvent{}, fmt.Errorf("watch %q: %w", path, err)) }
		for events := newEventReader(answer.Body, s.client.maxResult); ; {
			e, err := events.next()
			if err != nil {
				failed(r.broken(ctx, err))
				return
			}
			var change apitypes.FileChange
			switch e.name {
			case "change":
				if err := json.Unmarshal(e.data, &change); err != nil {
					failed(malformed("change: %w", err))
					return
				}
				if !yield(llmsandbox.FileEvent(change), nil) {
					return
				}
			case "problem":
				failed(e.result(nil))
				return
			}
		}
	}, nil
}

// SignURL returns a URL that reads a file of the sandbox (method GET) or writes it (PUT) without a key. It is valid until lifetime is over or the
// sandbox ends, and is below the client's own address. A lifetime is at most a day.
func (s *Sandbox) SignURL(ctx context.Context, method, path string, lifetime time.Duration) (string, error) {
	body := &apitypes.NewURL{Path: path, Method: method, Seconds: lifetime.Seconds()}
	var made apitypes.SignedURL
	if err := s.ask(ctx, &request{method: http.MethodPost, path: "/files/sign", body: body}, &made); err != nil {
		return "", fmt.Errorf("sign a URL for %q: %w", path, err)
	}
	signed, err := url.Parse(made.URL)
	if err != nil || !strings.HasPrefix(cmp.Or(signed, &url.URL{}).Path, "/v1/signed/") {
		return "", fmt.Errorf("sign a URL for %q: %w", path, malformed("it is not signed by this API"))
	}
	return s.client.base.JoinPath(signed.Path).String(), nil
}
