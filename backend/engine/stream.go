package engine

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"
)

// The kinds of frames in a container's output without a terminal: each is a byte of
// kind, three of nothing, four of length (big endian), and the content.
const (
	frameStdin  = 0
	frameStdout = 1
	frameStderr = 2
	frameSystem = 3

	frameHeader = 8
)

// maxStderr bounds what is kept of what an agent or the engine says on stderr.
const maxStderr = 4 << 10

var errOutOfStep = errors.New("the engine's stream is out of step")

// A stream is the byte stream to an agent over a container's standard streams.
type stream struct {
	conn client.HijackedResponse
	in   io.Reader
	left uint32 // of the stdout frame being read

	mu     sync.Mutex
	stderr []byte // the first of it
}

func newStream(h client.HijackedResponse) *stream {
	return &stream{conn: h, in: h.Reader}
}

// Read returns what the agent wrote to stdout.
func (s *stream) Read(p []byte) (int, error) {
	for s.left == 0 {
		if err := s.next(); err != nil {
			return 0, err
		}
	}
	n, err := s.in.Read(p[:min(int64(len(p)), int64(s.left))])
	s.left -= uint32(n)
	if errors.Is(err, io.EOF) && s.left > 0 {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// next reads frames up to the next one of stdout.
func (s *stream) next() error {
	var h [frameHeader]byte
	if _, err := io.ReadFull(s.in, h[:]); err != nil {
		if said := s.Said(); said != "" {
			return fmt.Errorf("%w: it said %q", io.ErrUnexpectedEOF, said)
		}
		return err
	}
	if h[1]|h[2]|h[3] != 0 {
		return fmt.Errorf("%w: a frame starts with % x", errOutOfStep, h)
	}
	size := binary.BigEndian.Uint32(h[4:])
	switch h[0] {
	case frameStdin, frameStdout:
		s.left = size
		return nil
	case frameStderr, frameSystem:
		return s.keep(int64(size))
	}
	return fmt.Errorf("%w: a frame of kind %d", errOutOfStep, h[0])
}

// keep reads what was said on stderr and keeps the first of it.
func (s *stream) keep(size int64) error {
	s.mu.Lock()
	room := min(size, int64(maxStderr-len(s.stderr)))
	s.mu.Unlock()
	text := make([]byte, room)
	n, err := io.ReadFull(s.in, text)
	s.mu.Lock()
	s.stderr = append(s.stderr, text[:n]...)
	s.mu.Unlock()
	if err == nil {
		_, err = io.CopyN(io.Discard, s.in, size-room)
	}
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Said is what came over stderr so far.
func (s *stream) Said() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.stderr)
}

func (s *stream) Write(p []byte) (int, error) { return s.conn.Conn.Write(p) }
func (s *stream) closeWrite() error           { return s.conn.CloseWrite() }
func (s *stream) Close() error                { return s.conn.Conn.Close() }

// maxRefusal bounds what is kept of an engine's reason, in bytes.
const maxRefusal = 4 << 10

// attach takes the standard streams of a container.
func attach(ctx context.Context, c *client.Client, id string) (client.HijackedResponse, error) {
	return upgrade(ctx, c, "/containers/"+id+"/attach?stream=1&stdin=1&stdout=1&stderr=1", nil)
}

// startExec starts a program that ExecCreate described, and takes its streams.
func startExec(ctx context.Context, c *client.Client, id string) (client.HijackedResponse, error) {
	return upgrade(ctx, c, "/exec/"+id+"/start", map[string]bool{"Detach": false, "Tty": false})
}

// upgrade asks for a connection to become a stream. The API's own client can do so too,
// but loses the engine's reason when it refuses; Podman prepares a container in this
// call, and whatever is wrong with one comes out here.
func upgrade(ctx context.Context, c *client.Client, path string, body any) (_ client.HijackedResponse, err error) {
	// An engine that does not look at the body takes what is in it for the stream's
	// first bytes.
	var content []byte
	if body != nil {
		if content, err = json.Marshal(body); err != nil {
			return client.HijackedResponse{}, fmt.Errorf("ask for a stream: %w", err)
		}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost,
		"http://"+client.DummyHost+apiRoot(c)+path, bytes.NewReader(content))
	if err != nil {
		return client.HijackedResponse{}, fmt.Errorf("ask for a stream: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "tcp")
	conn, err := c.Dialer()(ctx)
	if err != nil {
		return client.HijackedResponse{}, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer func() {
		if !stop() {
			err = context.Cause(ctx)
		}
		if err != nil {
			_ = conn.Close()
		}
	}()
	if err := req.Write(conn); err != nil {
		return client.HijackedResponse{}, fmt.Errorf("ask for a stream: %w", err)
	}
	in := bufio.NewReader(conn)
	resp, err := http.ReadResponse(in, req)
	if err != nil {
		return client.HijackedResponse{}, fmt.Errorf("ask for a stream: %w", err)
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		return client.HijackedResponse{}, refusal(resp)
	}
	return client.HijackedResponse{Conn: conn, Reader: in}, nil
}

// refusal is the engine's reason, as an error of its status's kind.
func refusal(resp *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxRefusal))
	if err != nil {
		return fmt.Errorf("%s, and its reason was lost: %w", resp.Status, err)
	}
	var said struct{ Message string }
	if json.Unmarshal(body, &said) != nil || said.Message == "" {
		said.Message = strings.TrimSpace(resp.Status + " " + string(body))
	}
	switch resp.StatusCode {
	case http.StatusNotFound:
		return errdefs.ErrNotFound.WithMessage(said.Message)
	case http.StatusConflict:
		return errdefs.ErrConflict.WithMessage(said.Message)
	case http.StatusForbidden:
		return errdefs.ErrPermissionDenied.WithMessage(said.Message)
	}
	return errdefs.ErrInternal.WithMessage(said.Message)
}

// apiRoot is what comes before every path of the API: the path in a tcp:// host, and the
// version agreed on.
func apiRoot(c *client.Client) string {
	root := "/v" + c.ClientVersion()
	if u, err := url.Parse(c.DaemonHost()); err == nil && u.Scheme == "tcp" {
		root = strings.TrimSuffix(u.Path, "/") + root
	}
	return root
}

// startProgram starts a program in a container, and returns its id and its streams.
func (b *Backend) startProgram(ctx context.Context, id string, stdin bool, env []string, argv ...string) (string, *stream, error) {
	made, err := b.client.ExecCreate(ctx, id, client.ExecCreateOptions{
		AttachStdin: stdin, AttachStdout: true, AttachStderr: true, Cmd: argv, WorkingDir: "/", Env: env,
	})
	if err != nil {
		return "", nil, err
	}
	h, err := startExec(ctx, b.client, made.ID)
	if err != nil {
		return "", nil, err
	}
	return made.ID, newStream(h), nil
}

// exec runs a program in a container to its end; its error contains what it printed.
func (b *Backend) exec(ctx context.Context, id string, in io.Reader, argv ...string) error {
	_, err := b.output(ctx, id, maxStderr, nil, in, argv...)
	return err
}

// output is exec with variables in place of the container's own, and returns the first
// bytes of what the program prints.
func (b *Backend) output(ctx context.Context, id string, limit int64, env []string, in io.Reader, argv ...string) ([]byte, error) {
	program, s, err := b.startProgram(ctx, id, in != nil, env, argv...)
	if err != nil {
		return nil, b.explain("run "+argv[0]+" in the container", err)
	}
	defer s.Close()
	stop := context.AfterFunc(ctx, func() { s.Close() })
	defer stop()
	fed := make(chan error, 1)
	go func() {
		if in == nil {
			fed <- nil
			return
		}
		_, err := io.Copy(s, in)
		fed <- errors.Join(err, s.closeWrite())
	}()
	var out bytes.Buffer
	_, err = io.Copy(&out, io.LimitReader(s, limit))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("run %s in the container: %w", argv[0], err), <-fed)
	}
	res, err := b.client.ExecInspect(ctx, program, client.ExecInspectOptions{})
	if err != nil {
		return nil, errors.Join(b.explain("run "+argv[0]+" in the container", err), <-fed)
	}
	if res.ExitCode != 0 {
		// How it ended says more than what it did not read.
		return nil, fmt.Errorf("%s ended with %d: %q", argv[0], res.ExitCode, out.String()+s.Said())
	}
	return out.Bytes(), <-fed
}
