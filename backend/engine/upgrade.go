package engine

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"
)

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
