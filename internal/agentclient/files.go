package agentclient

import (
	"bytes"
	"context"
	"io"
	"iter"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// Paths are the sandbox's; a relative one is below the agent's working directory.

// Stat describes a file. A symbolic link is not followed.
func (c *Client) Stat(ctx context.Context, path string) (agentproto.FileInfo, error) {
	var info agentproto.FileInfo
	err := c.request(ctx, agentproto.MethodStat, &agentproto.PathRequest{Path: path}, &info)
	return info, err
}

// List lists a directory, sorted by name.
func (c *Client) List(ctx context.Context, path string) (agentproto.FileList, error) {
	var list agentproto.FileList
	err := c.request(ctx, agentproto.MethodList, &agentproto.PathRequest{Path: path}, &list)
	return list, err
}

// Mkdir makes a directory, with parents also those above it.
func (c *Client) Mkdir(ctx context.Context, path string, mode uint32, parents bool) error {
	req := agentproto.MkdirRequest{Path: path, Mode: mode, Parents: parents}
	return c.request(ctx, agentproto.MethodMkdir, &req, &agentproto.Empty{})
}

// RemoveOptions tell what Remove may remove.
type RemoveOptions struct {
	Recursive bool // a directory with all below it
	Missing   bool // nothing being there is no error
}

// Remove removes a file or an empty directory, or more as the options allow.
func (c *Client) Remove(ctx context.Context, path string, o RemoveOptions) error {
	req := agentproto.RemoveRequest{Path: path, Recursive: o.Recursive, Missing: o.Missing}
	return c.request(ctx, agentproto.MethodRemove, &req, &agentproto.Empty{})
}

// Rename moves a file; an existing target is replaced as rename(2) does.
func (c *Client) Rename(ctx context.Context, from, to string) error {
	return c.request(ctx, agentproto.MethodRename, &agentproto.RenameRequest{From: from, To: to}, &agentproto.Empty{})
}

// Chmod sets a file's permission bits.
func (c *Client) Chmod(ctx context.Context, path string, mode uint32) error {
	return c.request(ctx, agentproto.MethodChmod, &agentproto.ChmodRequest{Path: path, Mode: mode}, &agentproto.Empty{})
}

// ReadFile copies a regular file to w and returns how many bytes that were.
func (c *Client) ReadFile(ctx context.Context, path string, w io.Writer) (int64, error) {
	return c.read(ctx, agentproto.ReadRequest{Path: path}, w)
}

// ReadRange is ReadFile of length bytes from an offset on, fewer where the file ends before; 0 is all up to its end.
func (c *Client) ReadRange(ctx context.Context, path string, offset, length uint64, w io.Writer) (int64, error) {
	return c.read(ctx, agentproto.ReadRequest{Path: path, Offset: offset, Length: length}, w)
}

// Find looks for files that were made or changed since a moment.
func (c *Client) Find(ctx context.Context, req agentproto.FindRequest) (agentproto.Found, error) {
	var found agentproto.Found
	err := c.request(ctx, agentproto.MethodFind, &req, &found)
	return found, err
}

// ReadBelow returns the content of a regular file that lies below a directory, without
// following a link on the way there. A file of more than limit bytes fails with
// CodeTooLarge.
func (c *Client) ReadBelow(ctx context.Context, dir, path string, limit int64) ([]byte, error) {
	return c.readAll(ctx, agentproto.ReadRequest{Path: path, Below: dir}, limit)
}

// ReadAll returns a regular file's content. A file of more than limit bytes fails
// with CodeTooLarge.
func (c *Client) ReadAll(ctx context.Context, path string, limit int64) ([]byte, error) {
	return c.readAll(ctx, agentproto.ReadRequest{Path: path}, limit)
}

func (c *Client) readAll(ctx context.Context, req agentproto.ReadRequest, limit int64) ([]byte, error) {
	buf := bounded{room: limit}
	req.Length = uint64(limit) + 1
	if _, err := c.read(ctx, req, &buf); err != nil {
		return nil, err
	}
	return buf.content.Bytes(), nil
}

// bounded is a buffer that takes no more than it has room for, whatever an agent sends.
type bounded struct {
	content bytes.Buffer
	room    int64
}

func (b *bounded) Write(p []byte) (int, error) {
	if int64(len(p)) > b.room {
		return 0, &agentproto.Error{Code: agentproto.CodeTooLarge, Msg: "the file is larger than what may be read into memory"}
	}
	b.room -= int64(len(p))
	return b.content.Write(p)
}

func (c *Client) read(ctx context.Context, req agentproto.ReadRequest, w io.Writer) (int64, error) {
	call, err := c.open(ctx, agentproto.MethodRead, &req, &agentproto.FileInfo{})
	if err != nil {
		return 0, err
	}
	return receive(ctx, call, w, &agentproto.Empty{})
}

// receive copies a call's bytes to w, and then takes its final message.
func receive(ctx context.Context, call *agentproto.Call, w io.Writer, final agentproto.Message) (int64, error) {
	defer context.AfterFunc(ctx, call.Cancel)()
	n, err := io.CopyBuffer(w, onlyReader{&channel{call}}, make([]byte, agentproto.MaxFrame))
	if err == nil {
		_, err = call.Recv(ctx, final)
	}
	if err != nil {
		call.Cancel()
		return n, because(ctx, err)
	}
	return n, nil
}

// because prefers the context's end, which cancelled the call, to the call's.
func because(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// channel is a call's bulk bytes in both directions.
type channel struct{ call *agentproto.Call }

func (c *channel) Read(p []byte) (int, error)  { return c.call.Read(agentproto.ChanOut, p) }
func (c *channel) Write(p []byte) (int, error) { return c.call.Write(agentproto.ChanIn, p) }

// onlyReader hides a WriterTo, so that io.CopyBuffer uses its buffer.
type onlyReader struct{ io.Reader }

// WriteOptions tell how WriteFile writes.
type WriteOptions struct {
	Offset    uint64
	Mode      uint32 // permission bits of a file it makes; 0 means 0644
	Create    bool
	Exclusive bool
	Truncate  bool
	Parents   bool // missing directories are made
}

// WriteFile writes a regular file with what r gives, and returns what became of it.
// A Read that is waiting is not interrupted by the end of ctx.
func (c *Client) WriteFile(ctx context.Context, path string, r io.Reader, o WriteOptions) (agentproto.FileInfo, error) {
	var info agentproto.FileInfo
	err := c.send(ctx, agentproto.MethodWrite, &agentproto.WriteRequest{
		Path: path, Offset: o.Offset, Mode: o.Mode, Create: o.Create, Exclusive: o.Exclusive, Truncate: o.Truncate, Parents: o.Parents,
	}, r, &info)
	return info, err
}

// send does a call that takes bytes and has one final reply.
func (c *Client) send(ctx context.Context, m agentproto.Method, req agentproto.Message, r io.Reader, final agentproto.Message) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	call, err := c.conn.Open(m, req)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, call.Cancel)()
	source := &source{r: r}
	_, copyErr := io.CopyBuffer(&channel{call}, source, make([]byte, agentproto.MaxFrame))
	if source.err != nil {
		call.Cancel()
		return because(ctx, source.err)
	}
	if copyErr == nil {
		copyErr = call.CloseWrite(agentproto.ChanIn)
	}
	// The agent's own answer says more than that it takes no more bytes.
	if _, err := call.Recv(ctx, final); err != nil {
		call.Cancel()
		return because(ctx, err)
	}
	return copyErr
}

// source remembers a reader's own failure, to tell it from the call's.
type source struct {
	r   io.Reader
	err error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

// TarOut writes a file or directory to w as a tar stream, with names below prefix
// (prefix itself for a file). Links are left out.
func (c *Client) TarOut(ctx context.Context, path, prefix string, w io.Writer) (agentproto.TarResult, error) {
	return c.tarOut(ctx, &agentproto.TarOutRequest{Path: path, Prefix: prefix}, w)
}

// TarTree is TarOut of a tree with its symbolic links, for those who never follow them.
func (c *Client) TarTree(ctx context.Context, path, prefix string, w io.Writer) (agentproto.TarResult, error) {
	return c.tarOut(ctx, &agentproto.TarOutRequest{Path: path, Prefix: prefix, Links: true}, w)
}

// TarLayer writes what was written to the root file system to w as a tar stream, in which
// deleted names and replaced directories are as tarcheck.OpaqueRecord says.
func (c *Client) TarLayer(ctx context.Context, w io.Writer) (agentproto.TarResult, error) {
	return c.receiveTar(ctx, agentproto.MethodTarLayer, &agentproto.Empty{}, w)
}

// TarRoot writes the root file system to w as a tar stream, as [agentproto.TarRootRequest] says.
func (c *Client) TarRoot(ctx context.Context, all bool, w io.Writer) (agentproto.TarResult, error) {
	return c.receiveTar(ctx, agentproto.MethodTarRoot, &agentproto.TarRootRequest{All: all}, w)
}

func (c *Client) tarOut(ctx context.Context, req *agentproto.TarOutRequest, w io.Writer) (agentproto.TarResult, error) {
	return c.receiveTar(ctx, agentproto.MethodTarOut, req, w)
}

func (c *Client) receiveTar(ctx context.Context, m agentproto.Method, req agentproto.Message, w io.Writer) (agentproto.TarResult, error) {
	var result agentproto.TarResult
	if err := ctx.Err(); err != nil {
		return result, err
	}
	call, err := c.conn.Open(m, req)
	if err != nil {
		return result, err
	}
	_, err = receive(ctx, call, w, &result)
	return result, err
}

// TarLimits bound what TarIn unpacks; 0 means no limit but the disk's.
type TarLimits struct {
	MaxBytes, MaxFiles uint64
	// Links allows symbolic links, which are otherwise left out. None is followed.
	Links bool
}

// TarIn unpacks a tar stream below a directory, which is made when missing.
func (c *Client) TarIn(ctx context.Context, dir string, r io.Reader, l TarLimits) (agentproto.TarResult, error) {
	var result agentproto.TarResult
	err := c.send(ctx, agentproto.MethodTarIn, &agentproto.TarInRequest{Dir: dir, MaxBytes: l.MaxBytes, MaxFiles: l.MaxFiles, Links: l.Links}, r, &result)
	return result, err
}

// Watch watches a directory from now on. The events end with the one error that
// ended the watch, at the latest when ctx ends; they are read once, and until
// then ctx must be ended to stop the watch.
func (c *Client) Watch(ctx context.Context, path string, recursive bool) (iter.Seq2[agentproto.WatchEvent, error], error) {
	call, err := c.open(ctx, agentproto.MethodWatch, &agentproto.WatchRequest{Path: path, Recursive: recursive}, &agentproto.Empty{})
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, call.Cancel)
	return func(yield func(agentproto.WatchEvent, error) bool) {
		defer call.Cancel()
		defer stop()
		for {
			var event agentproto.WatchEvent
			if _, err := call.Recv(ctx, &event); err != nil {
				yield(event, because(ctx, err))
				return
			}
			if !yield(event, nil) {
				return
			}
		}
	}, nil
}
