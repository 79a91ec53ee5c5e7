package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/client"
)

// TestListBeginsAgain: a list whose next sandbox has ended is begun again, and not for ever.
func TestListBeginsAgain(t *testing.T) {
	var asked atomic.Int32
	var ends atomic.Int32 // how often the next one has ended
	answer := func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		switch {
		case r.URL.Query().Get("after") == "":
			answers("application/json", `{"sandboxes": [{"id": "sb-1"}], "next": "sb-1"}`, true)(w, r)
		case asked.Load() <= 2*ends.Load():
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusUnprocessableEntity)
			fmt.Fprint(w, `{"status": 422, "code": "invalid", "detail": "list from the beginning"}`)
		default:
			answers("application/json", `{"sandboxes": [{"id": "sb-2", "deadline": "2026-01-02T03:04:05Z"}]}`, true)(w, r)
		}
	}
	c, _ := hostileServer(t, answer)
	for n := range int32(3) {
		ends.Store(n)
		asked.Store(0)
		if list, err := c.List(testContext(t), nil); err != nil || len(list) != 2 || list[1].ID != "sb-2" || list[1].Deadline.IsZero() {
			t.Errorf("%d times: got %v, %v, want both", n, list, err)
		}
	}
	ends.Store(3)
	asked.Store(0)
	if list, err := c.List(testContext(t), nil); !errors.Is(err, llmsandbox.ErrInvalid) || asked.Load() != 6 {
		t.Errorf("got %v, %v after %d requests, want ErrInvalid after 6", list, err, asked.Load())
	}
}

// TestComeBack: what a server has not begun is sent again when it says, and nothing else is.
func TestComeBack(t *testing.T) {
	refuse := func(w http.ResponseWriter, status int, code, after string) {
		if after != "" {
			w.Header().Set("Retry-After", after)
		}
		if code != "" {
			w.Header().Set("Content-Type", "application/problem+json")
		}
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"status": %d, "code": %q}`, status, code)
	}
	ctx := testContext(t)
	run := func(sb *client.Sandbox) error {
		_, err := sb.Run(ctx, "echo", &llmsandbox.RunOptions{Stdin: strings.NewReader("in")})
		return err
	}
	get := func(sb *client.Sandbox) error { _, err := sb.Stat(ctx, "a"); return err }
	for name, test := range map[string]struct {
		status      int
		code, after string
		refusals    int32 // before it is served
		call        func(*client.Sandbox) error
		requests    int32
		ok          bool
	}{
		"busy":                 {429, "busy", "0", 2, run, 3, true},
		"busy for ever":        {429, "busy", "0", 100, run, 5, false},
		"something between":    {429, "", "0", 1, run, 2, true},
		"stopping":             {503, "stopping", "0", 1, run, 2, true},
		"at a date":            {429, "busy", "Mon, 02 Jan 2006 15:04:05 GMT", 1, run, 2, true},
		"does not say when":    {429, "busy", "", 1, run, 1, false},
		"says nonsense":        {429, "busy", "-1", 1, run, 1, false},
		"far away":             {429, "busy", "31", 1, run, 1, false},
		"lost":                 {503, "lost", "0", 1, run, 1, false},
		"who knows":            {503, "", "0", 1, run, 1, false},
		"failed":               {500, "internal", "0", 1, run, 1, false},
		"who knows, of a look": {503, "", "0", 1, get, 2, true},
		"file":                 {503, "stopping", "0", 1, func(sb *client.Sandbox) error { return sb.WriteFile(ctx, "a", []byte("in")) }, 2, true},
		"file that is read":    {503, "stopping", "0", 1, func(sb *client.Sandbox) error { return sb.WriteFileFrom(ctx, "a", strings.NewReader("in"), 0) }, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int32
			_, sb := hostileServer(t, func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err != nil || r.Method != http.MethodGet && !strings.Contains(string(body), "in") {
					t.Errorf("got the body %q, %v, want all of it each time", body, err)
				}
				switch {
				case asked.Add(1) <= test.refusals:
					refuse(w, test.status, test.code, test.after)
				case r.Method == http.MethodPut:
					w.WriteHeader(http.StatusNoContent)
				case r.Method == http.MethodGet:
					fmt.Fprint(w, `{"mode": "0644"}`)
				default:
					fmt.Fprint(w, success)
				}
			})
			if err := test.call(sb); (err == nil) != test.ok || asked.Load() != test.requests {
				t.Errorf("got %v after %d requests, want success: %t, and %d", err, asked.Load(), test.ok, test.requests)
			}
		})
	}
}

// TestComeBackIsBounded: a context ends the wait for a server that is busy.
func TestComeBackIsBounded(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "30")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	defer server.Close()
	ctx, cancel := context.WithCancel(testContext(t))
	defer cancel()
	transport := server.Client().Transport
	c, err := client.NewWith(server.URL, key, &client.Options{HTTPClient: &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		defer cancel() // once the answer has come
		return transport.RoundTrip(r)
	})}})
	if err != nil {
		t.Fatal(err)
	}
	res, err := c.Run(ctx, "", nil)
	var refused *client.Error
	if !errors.Is(err, context.Canceled) || !errors.As(err, &refused) || refused.Status != http.StatusTooManyRequests || res.Status != llmsandbox.StatusSetupFailed {
		t.Errorf("got %+v, %v, want the context's error and the server's", res, err)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
