package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/pool"
)

// httpServer measures what a program costs through the HTTP server, against the library's own calls for the same.
func httpServer(ctx context.Context, e *env, rounds int) (err error) {
	s, err := startServer(ctx, e.command)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	forking, err := startServer(ctx, e.command, "--zygote")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, forking.close()) }()
	o := llmsandbox.Options{Language: "python", BestEffort: true}
	p, err := pool.New(&pool.Config{Options: o, Max: 4, Min: 2, Prepare: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close(context.WithoutCancel(ctx))) }()
	sb, err := llmsandbox.Open(ctx, &o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sb.Close()) }()
	var created struct{ ID string }
	if err := s.post(ctx, "/v1/sandboxes", map[string]any{"language": "python", "lifetime_seconds": 3600}, &created); err != nil {
		return err
	}
	code := map[string]any{"code": one}
	run := func(s *server, path string) func(context.Context) error {
		return func(ctx context.Context) error {
			var res struct{ Status, Stdout string }
			if err := s.post(ctx, path, code, &res); err != nil || res.Stdout == "1\n" {
				return err
			}
			return fmt.Errorf("POST %s: %+v", path, res)
		}
	}
	inSandbox, posted := "Run in an open sandbox", "POST /v1/sandboxes/ID/run"
	warm, postedWarm, postedForked := "Acquire+Run+Release, warm", "POST /v1/run, warm", "POST /v1/run, warm, of serve --zygote"
	// Not counted: the pools make up for what was taken, as they do between the requests of an agent.
	filling := contender{"(the pools fill up)", func(ctx context.Context) (time.Duration, error) {
		start := time.Now()
		return time.Since(start), pause(ctx, 250*time.Millisecond)
	}}
	t, err := measure(ctx, rounds,
		timed(inSandbox, func(ctx context.Context) error { return ok(sb.Run(ctx, one, nil)) }),
		timed(posted, run(s, "/v1/sandboxes/"+created.ID+"/run")),
		filling,
		timed(warm, func(ctx context.Context) error {
			l, err := p.Acquire(ctx, nil)
			if err != nil {
				return err
			}
			err = ok(l.Sandbox().Run(ctx, one, nil))
			l.Release()
			return err
		}),
		filling,
		timed(postedWarm, run(s, "/v1/run")),
		filling,
		timed(postedForked, run(forking, "/v1/run")),
	)
	if err != nil {
		return err
	}
	t.names = []string{inSandbox, posted, warm, postedWarm, postedForked}
	t.print()
	more := func(a, b string) float64 { return percentile(t.times[a], 50) - percentile(t.times[b], 50) }
	fmt.Printf("%s takes %.2f ms more than the library's own\n", posted, more(posted, inSandbox))
	aimAtMost("ms that "+postedWarm+" takes more than "+warm, 1.5, more(postedWarm, warm))
	if err := s.remove(ctx, created.ID); err != nil {
		return err
	}
	peak, err := s.saturate(ctx)
	if err != nil {
		return err
	}
	fmt.Println("with --zygote:")
	forked, err := forking.saturate(ctx)
	if err == nil {
		fmt.Printf("the peak with --zygote is %.1f × that without\n", forked/peak)
	}
	return err
}

// saturate measures how many programs a second end well with more and more clients, and with three times as many as that takes.
func (s *server) saturate(ctx context.Context) (peak float64, err error) {
	at := 0
	fmt.Println("clients   programs/s   told to come back/s")
	for clients := 1; clients <= 32; clients *= 2 {
		n, err := s.load(ctx, clients)
		if err != nil {
			return 0, err
		}
		if n > peak {
			peak, at = n, clients
		}
	}
	n, err := s.load(ctx, 3*at)
	if err != nil {
		return 0, err
	}
	aimAtLeast("programs/s with three times the clients of the peak × the peak", .95, n/peak)
	return peak, nil
}

// load returns how many programs per second succeed with a number of clients. Each client sends its next request as soon as the last is
// answered, also after 429 and 503, which is the worst that clients do.
func (s *server) load(ctx context.Context, clients int) (perSecond float64, err error) {
	const span = 4 * time.Second
	ctx, cancel := context.WithTimeout(ctx, span)
	defer cancel()
	var ran, refused atomic.Int64
	var all errgroup.Group
	for range clients {
		all.Go(func() error {
			for ctx.Err() == nil {
				var res struct{ Stdout string }
				err := s.post(ctx, "/v1/run", map[string]any{"code": one}, &res)
				var busy *statusError
				switch {
				case err == nil && res.Stdout == "1\n":
					ran.Add(1)
				case errors.As(err, &busy) && (busy.status == http.StatusTooManyRequests || busy.status == http.StatusServiceUnavailable):
					refused.Add(1)
				case ctx.Err() == nil:
					return fmt.Errorf("with %d clients: %+v, %w", clients, res, err)
				}
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		return 0, err
	}
	perSecond = float64(ran.Load()) / span.Seconds()
	fmt.Printf("%7d %12.1f %21.1f\n", clients, perSecond, float64(refused.Load())/span.Seconds())
	return perSecond, nil
}

// A statusError is an answer that is no success.
type statusError struct {
	status int
	text   string
}

func (e *statusError) Error() string { return fmt.Sprintf("%d: %s", e.status, e.text) }

// A server is `llmsandbox serve`, of which this process is the client.
type server struct {
	cmd          *exec.Cmd
	address, key string
	state        string
	log          chan error
}

// startServer returns when it serves.
func startServer(ctx context.Context, command string, flags ...string) (_ *server, err error) {
	state, err := os.MkdirTemp("", "llmsandbox-bench-")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(state))
		}
	}()
	flags = append([]string{"serve", "--best-effort", "--listen", "127.0.0.1:0", "--state", state}, flags...)
	s := &server{cmd: exec.CommandContext(ctx, command, flags...), state: state, log: make(chan error, 1)}
	stderr, err := s.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	lines, said := bufio.NewScanner(stderr), ""
	for lines.Scan() {
		said += lines.Text() + "\n"
		_, rest, ok := strings.Cut(lines.Text(), "serving on ")
		if !ok {
			continue
		}
		s.address, s.key, _ = strings.Cut(rest, "; the key, until it ends, is ")
		go func() {
			_, err := io.Copy(io.Discard, stderr)
			s.log <- err
		}()
		return s, nil
	}
	return nil, errors.Join(errors.New("the server ended: "+said), lines.Err(), s.cmd.Wait())
}

func (s *server) send(ctx context.Context, method, path string, body []byte, answer any) error {
	r, err := http.NewRequestWithContext(ctx, method, s.address+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+s.key)
	r.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	switch {
	case err != nil:
		return err
	case res.StatusCode >= http.StatusBadRequest:
		return fmt.Errorf("%s %s: %w", method, path, &statusError{res.StatusCode, string(text)})
	case answer == nil:
		return nil
	}
	return json.Unmarshal(text, answer)
}

func (s *server) post(ctx context.Context, path string, body, answer any) error {
	b, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return s.send(ctx, http.MethodPost, path, b, answer)
}

func (s *server) remove(ctx context.Context, id string) error {
	return s.send(ctx, http.MethodDelete, "/v1/sandboxes/"+id, nil, nil)
}

func (s *server) close() error {
	http.DefaultClient.CloseIdleConnections()
	err := s.cmd.Process.Signal(syscall.SIGTERM)
	return errors.Join(err, <-s.log, s.cmd.Wait(), os.RemoveAll(s.state))
}
