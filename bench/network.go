package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/llmsandbox/llmsandbox"
)

// fetches prints how many seconds a hundred requests took, and then one of 32 MiB.
const fetches = `
import os, time, urllib.request
os.environ["no_proxy"] = os.environ["NO_PROXY"] = ""
def get(path):
    return urllib.request.urlopen(os.environ["SERVER"] + path).read()
get("/small")
start = time.perf_counter()
for _ in range(100):
    get("/small")
print(time.perf_counter() - start)
start = time.perf_counter()
assert len(get("/large")) == 32 << 20
print(time.perf_counter() - start)
`

// network compares requests to a server on this machine's loopback with those through the
// gate of a sandbox, by what the program itself measures.
func network(ctx context.Context, e *env, rounds int) error {
	large := make([]byte, 32<<20)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/large" {
			_, _ = w.Write(large) // a client that goes away fails by itself
			return
		}
		fmt.Fprint(w, "small")
	}))
	defer server.Close()
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		return err
	}
	o := llmsandbox.Options{
		BestEffort: true, Env: map[string]string{"SERVER": server.URL},
		Network: llmsandbox.Network{Mode: llmsandbox.NetworkAllow, Allow: []string{"127.0.0.1:" + port}},
	}
	sb, err := llmsandbox.Open(ctx, &o)
	if err != nil {
		return err
	}
	defer sb.Close()
	bare := func(ctx context.Context) (string, error) {
		cmd := exec.CommandContext(ctx, e.python, "-c", fetches)
		cmd.Env = append(os.Environ(), "SERVER="+server.URL)
		cmd.Stderr = &bytes.Buffer{}
		out, err := cmd.Output()
		if err != nil {
			return "", fmt.Errorf("%w: %s", err, cmd.Stderr)
		}
		return string(out), nil
	}
	inside := func(ctx context.Context) (string, error) {
		res, err := sb.Run(ctx, fetches, nil)
		if err := ok(res, err); err != nil {
			return "", err
		}
		return res.Stdout, nil
	}
	openClose := func(o llmsandbox.Options) func(context.Context) error {
		return func(ctx context.Context) error {
			sb, err := llmsandbox.Open(ctx, &o)
			if err != nil {
				return err
			}
			return sb.Close()
		}
	}
	rounds = max(rounds/4, 3)
	return errors.Join(
		compare(ctx, rounds,
			reported("100 requests, bare", bare, 0), reported("100 requests through the gate", inside, 0),
			reported("32 MiB, bare", bare, 1), reported("32 MiB through the gate", inside, 1)),
		compare(ctx, rounds,
			timed("Open+Close", openClose(llmsandbox.Options{BestEffort: true})), timed("Open+Close with a network", openClose(o))))
}

// reported makes a contender of a program that says in a line how many seconds it took.
func reported(name string, run func(context.Context) (string, error), line int) contender {
	return contender{name, func(ctx context.Context) (time.Duration, error) {
		out, err := run(ctx)
		if err != nil {
			return 0, err
		}
		lines := strings.Fields(out)
		if len(lines) <= line {
			return 0, fmt.Errorf("it printed %q", out)
		}
		seconds, err := strconv.ParseFloat(lines[line], 64)
		return time.Duration(seconds * float64(time.Second)), err
	}}
}
