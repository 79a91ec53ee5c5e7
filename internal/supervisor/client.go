package supervisor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/llmsandbox/llmsandbox/internal/egress"
	"github.com/llmsandbox/llmsandbox/internal/layerstore"
)

const (
	// maxBody bounds a request's body and an answer's, in bytes.
	maxBody = 8 << 20
	// endTime bounds how long the end of a record is waited for, beside its connections' end.
	endTime = 10 * time.Second
)

// A Client speaks with one sandbox's supervisor. It is safe for concurrent use.
type Client struct{ http http.Client }

// Find returns a client of the supervisor that owns a sandbox; nil when no process of this user
// on this machine does.
func Find(ctx context.Context, backend, id string) (*Client, error) {
	d, err := dir()
	if err != nil {
		return nil, err
	}
	path := socket(d, backend, id)
	if _, err := os.Lstat(path); err != nil {
		return nil, nil // whatever keeps us from it keeps a supervisor of ours from it
	}
	if err := layerstore.MakePrivate(d); err != nil { // it is there, and must be ours
		return nil, fmt.Errorf("the directory of supervisors' sockets: %w", err)
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx, path) }
	first, err := dial(ctx, "", "")
	switch {
	case errors.Is(err, os.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED): // it has just ended, or was killed
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reach the sandbox's supervisor: %w", err)
	}
	_ = first.Close() // nothing was sent
	return &Client{http.Client{Transport: &http.Transport{DialContext: dial}}}, nil
}

func dial(ctx context.Context, path string) (net.Conn, error) {
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", address(d, path))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, errors.Unwrap(err)) // which names the descriptor
	}
	return conn, nil
}

// GC removes the sockets of supervisors that were killed, and returns their paths.
func GC() (removed []string, err error) {
	d, err := dir()
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(d)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	var errs []error
	for _, e := range entries {
		path := filepath.Join(d, e.Name())
		conn, err := dial(context.Background(), path)
		if err == nil {
			_ = conn.Close() // nothing was sent
			continue
		}
		if !errors.Is(err, syscall.ECONNREFUSED) {
			continue // it has just gone, or is another's
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
			continue
		}
		removed = append(removed, path)
	}
	return removed, errors.Join(errs...)
}

// Close closes what is open to the supervisor.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Network is what the sandbox may reach.
func (c *Client) Network(ctx context.Context) (Network, error) {
	var n Network
	return n, c.call(ctx, http.MethodGet, "/network", nil, &n)
}

// SetNetwork changes it. Only Mode and Allow count.
func (c *Client) SetNetwork(ctx context.Context, n Network) error {
	return c.call(ctx, http.MethodPut, "/network", n, nil)
}

// Reset makes the sandbox as it was when it was opened.
func (c *Client) Reset(ctx context.Context) error {
	return c.call(ctx, http.MethodPost, "/reset", nil, nil)
}

// A Record has the attempts since [Client.Record] until its end.
type Record struct {
	client *Client
	id     string
	failed func(error)
}

type recordID struct {
	ID string `json:"id"`
}

// Record begins a record; failed gets the error when it cannot be had at its end.
func (c *Client) Record(ctx context.Context, failed func(error)) (*Record, error) {
	var id recordID
	if err := c.call(ctx, http.MethodPost, "/network/records", nil, &id); err != nil {
		return nil, err
	}
	return &Record{c, id.ID, failed}, nil
}

// End is what [gateway.Record.End] is.
func (r *Record) End(settle time.Duration) ([]egress.Attempt, int) {
	if r.id == "" {
		return nil, 0 // there was no network
	}
	ctx, cancel := context.WithTimeout(context.Background(), settle+endTime)
	defer cancel()
	var a Attempts
	if err := r.client.call(ctx, http.MethodDelete, "/network/records/"+r.id+"?settle_ms="+strconv.FormatInt(settle.Milliseconds(), 10), nil, &a); err != nil {
		r.failed(err)
	}
	return a.Attempts, a.Dropped
}

func (c *Client) call(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://supervisor"+path, body)
	if err != nil {
		return err
	}
	res, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("ask the sandbox's supervisor: %w", err)
	}
	defer res.Body.Close()
	from := json.NewDecoder(io.LimitReader(res.Body, maxBody))
	if res.StatusCode >= 300 {
		e := &Error{}
		if err := from.Decode(e); err != nil {
			return fmt.Errorf("the sandbox's supervisor answers %s", res.Status)
		}
		return e
	}
	if out == nil {
		return nil
	}
	if err := from.Decode(out); err != nil {
		return fmt.Errorf("read the answer of the sandbox's supervisor: %w", err)
	}
	return nil
}
