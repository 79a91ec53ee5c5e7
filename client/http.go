package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/apierror"
	"github.com/llmsandbox/llmsandbox/internal/apitypes"
	"github.com/llmsandbox/llmsandbox/internal/ctxend"
	"github.com/llmsandbox/llmsandbox/internal/errclass"
	"github.com/llmsandbox/llmsandbox/internal/plainjson"
)

// How often a request is sent that the server has not begun, and what is too long to wait for the next time.
const (
	attempts    = 5
	longestWait = 30 * time.Second
)

// maxAnswer bounds an answer that is no result of a run and no file, in bytes.
const maxAnswer = 8 << 20

// maxWaste bounds what is read of an answer only so that its connection can be used again.
const maxWaste = 4 << 10

// Media types.
const (
	jsonType  = "application/json"
	eventType = "text/event-stream"
	fileType  = "application/octet-stream"
	tarType   = "application/x-tar"
)

// A request is one of the API.
type request struct {
	method, path string
	query        url.Values
	body         any       // of its JSON; nil: it has none
	content      []byte    // a body that is a file's, in its place
	upload       io.Reader // the same, which is read once
	kind         string    // of content or upload; empty: a file
	accept       string    // empty: JSON
	part         string    // of a file, as the header Range has it; empty: all
	want         int       // the status of success; 0: 200
	orOK         bool      // so is 200
	after        string    // the id of the event behind which a stream is to go on

	// socket has it ask for a WebSocket, which is in conn after success.
	socket bool
	conn   *websocket.Conn

	// unsent is set while no connection was had for it: then the server knows nothing of it.
	unsent atomic.Bool
}

// send sends a request and returns its answer, which is a success; its body is the caller's to close.
func (c *Client) send(ctx context.Context, r *request) (*http.Response, error) {
	body := r.content
	if r.body != nil {
		if err := checkText(r.body); err != nil {
			return nil, r.neverSent(err)
		}
		var err error
		if body, err = plainjson.Marshal(r.body); err != nil {
			return nil, r.neverSent(fmt.Errorf("write the request: %w", errclass.Of(llmsandbox.ErrInvalid, err)))
		}
		if len(body) > apitypes.MaxBody {
			return nil, r.neverSent(fmt.Errorf("the request: %w: a server takes at most %d MiB of code, files and input: write files instead", llmsandbox.ErrTooLarge, apitypes.MaxBody>>20))
		}
	}
	for n := 1; ; n++ {
		res, err := c.attempt(ctx, r, body)
		if err != nil {
			return nil, err
		}
		switch {
		case res.StatusCode == cmp.Or(r.want, http.StatusOK), r.orOK && res.StatusCode == http.StatusOK:
			return res, nil
		case res.StatusCode < 300:
			finish(res.Body)
			return nil, malformed("its status is %d, which is none of the API's: is the address right?", res.StatusCode)
		}
		refused := refusal(res)
		after, comeBack := retryAfter(res.Header, time.Now())
		finish(res.Body)
		begunNothing := apierror.BegunNothing(refused.Status, refused.Code) || r.method == http.MethodGet && refused.Status == http.StatusServiceUnavailable
		if !begunNothing || !comeBack || r.upload != nil || n == attempts {
			return nil, refused
		}
		select {
		case <-time.After(after):
		case <-ctx.Done():
			return nil, fmt.Errorf("%w, while the server was to be asked again: %w", context.Cause(ctx), refused)
		}
	}
}

// attempt sends a request once.
func (c *Client) attempt(ctx context.Context, r *request, body []byte) (*http.Response, error) {
	if ctx.Err() != nil {
		return nil, r.neverSent(context.Cause(ctx))
	}
	address := c.base.JoinPath(r.path)
	address.RawQuery = r.query.Encode()
	r.unsent.Store(false)
	content := r.upload
	if body != nil {
		content = bytes.NewReader(body)
	}
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { r.unsent.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { r.unsent.Store(false) },
	})
	req, err := http.NewRequestWithContext(traced, r.method, address.String(), content)
	if err != nil {
		return nil, r.neverSent(fmt.Errorf("make the request: %w", err))
	}
	switch {
	case r.body != nil:
		req.Header.Set("Content-Type", jsonType)
	case content != nil:
		req.Header.Set("Content-Type", cmp.Or(r.kind, fileType))
		req.Header.Set("Expect", "100-continue") // what is refused is not sent
	}
	req.Header.Set("Accept", cmp.Or(r.accept, jsonType))
	if r.after != "" {
		req.Header.Set("Last-Event-ID", r.after)
	}
	if r.part != "" {
		req.Header.Set("Range", r.part)
	}
	req.Header.Set("Accept-Encoding", "identity") // so that bounds are of what is read
	c.authorize(req.Header)
	if r.socket {
		return c.dial(r, req)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, r.failed(ctx, err)
	}
	return res, nil
}

func (r *request) neverSent(err error) error {
	r.unsent.Store(true)
	return err
}

// failed is the error of a request without an answer, or without all of it.
func (r *request) failed(ctx context.Context, err error) error {
	switch {
	case ctxend.Ended(ctx):
		return context.Cause(ctx)
	case r.unsent.Load():
		return fmt.Errorf("the server was not reached: %w", err)
	default:
		return lost(fmt.Errorf("the connection to the server ended: %w", err))
	}
}

// call sends a request and decodes its answer into v; nil: it has none.
func (c *Client) call(ctx context.Context, r *request, v any) error {
	res, err := c.send(ctx, r)
	if err != nil {
		return err
	}
	defer finish(res.Body)
	if v == nil {
		return nil
	}
	return r.decode(ctx, res.Body, maxAnswer, v)
}

// decode reads JSON of a bounded length.
func (r *request) decode(ctx context.Context, body io.Reader, most int64, v any) error {
	text, err := io.ReadAll(io.LimitReader(body, most+1))
	switch {
	case err != nil:
		return r.failed(ctx, err)
	case int64(len(text)) > most:
		return malformed("it has more than %d bytes", most)
	}
	if err := json.Unmarshal(text, v); err != nil {
		return malformed("%w", err)
	}
	return nil
}

// lingering bounds how long the end of an answer is waited for of which everything is known.
const lingering = 100 * time.Millisecond

// finish closes an answer's body, at its end if that comes soon: then the connection is used again.
func finish(body io.ReadCloser) {
	stop := time.AfterFunc(lingering, func() { _ = body.Close() })
	defer stop.Stop()
	// What has come is known; this says nothing more of it.
	_, _ = io.CopyN(io.Discard, body, maxWaste)
	_ = body.Close()
}

// isWhole reports whether the end of an answer's body shows that all of it has come.
func isWhole(res *http.Response) bool {
	return res.ProtoMajor >= 2 || res.ContentLength >= 0 || slices.Contains(res.TransferEncoding, "chunked")
}

// retryAfter is how long from now a server wants to be left alone, if it says so and it is not too long.
func retryAfter(h http.Header, now time.Time) (time.Duration, bool) {
	text := h.Get("Retry-After")
	after := time.Duration(0)
	if s, err := strconv.ParseUint(text, 10, 16); err == nil {
		after = time.Duration(s) * time.Second
	} else if at, err := http.ParseTime(text); err == nil {
		after = max(at.Sub(now), 0)
	} else {
		return 0, false
	}
	return after, after <= longestWait
}
