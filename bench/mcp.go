package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// mcpServer measures how soon the MCP server answers a client that starts it, and what a
// program costs through it while the pool has a sandbox ready.
func mcpServer(ctx context.Context, e *env, rounds int) error {
	state, err := os.MkdirTemp("", "llmsandbox-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(state)
	t, err := measure(ctx, rounds,
		program("llmsandbox version", e.command, "version"),
		contender{"llmsandbox mcp, exec to initialize", func(ctx context.Context) (time.Duration, error) {
			start := time.Now()
			s, err := startMCP(ctx, e.command, state)
			took := time.Since(start)
			if err != nil {
				return 0, err
			}
			return took, s.close()
		}},
	)
	if err != nil {
		return err
	}
	t.print()
	aimAtMost("ms from exec to the answer of initialize", 50, percentile(t.times["llmsandbox mcp, exec to initialize"], 50))

	s, err := startMCP(ctx, e.command, state)
	if err != nil {
		return err
	}
	bare, warm := "python3 -c 'print(1)', bare", "execute_code of the same, warm pool"
	t, err = measure(ctx, rounds,
		program(bare, e.python, "-c", "print(1)"),
		timed(warm, func(context.Context) error {
			return s.call("tools/call", map[string]any{"name": "execute_code", "arguments": map[string]any{"code": "print(1)"}})
		}),
		// Not counted: the pool makes up for what was taken, as it does between calls of an agent.
		contender{"(the pool fills up)", func(ctx context.Context) (time.Duration, error) {
			start := time.Now()
			return time.Since(start), pause(ctx, 250*time.Millisecond)
		}},
	)
	if err := errors.Join(err, s.close()); err != nil {
		return err
	}
	t.names = t.names[:2]
	t.print()
	aimAtMost("execute_code of hello Python × bare python3", 1, t.ratio(warm, bare))
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// An mcpClient talks with a server that it started.
type mcpClient struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines *bufio.Scanner
	last  int
}

// startMCP starts a server and returns when it has answered initialize.
func startMCP(ctx context.Context, command, state string) (*mcpClient, error) {
	cmd := exec.CommandContext(ctx, command, "mcp", "--best-effort")
	cmd.Env, cmd.Stderr = append(os.Environ(), "LLMSANDBOX_STATE_DIR="+state), os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &mcpClient{cmd: cmd, in: in, lines: bufio.NewScanner(out)}
	err = s.call("initialize", map[string]any{
		"protocolVersion": "2025-06-18", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "bench", "version": "1"},
	})
	if err == nil {
		_, err = io.WriteString(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n")
	}
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// call makes a request and waits for an answer that is no error.
func (s *mcpClient) call(method string, params any) error {
	s.last++
	request, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": s.last, "method": method, "params": params})
	if err != nil {
		return err
	}
	if _, err := s.in.Write(append(request, '\n')); err != nil {
		return err
	}
	for s.lines.Scan() {
		var answer struct {
			ID     int
			Error  *struct{ Message string }
			Result struct {
				IsError bool
				Content []struct{ Text string }
			}
		}
		if err := json.Unmarshal(s.lines.Bytes(), &answer); err != nil {
			return err
		}
		switch {
		case answer.ID != s.last: // a notification
		case answer.Error != nil:
			return fmt.Errorf("%s: %s", method, answer.Error.Message)
		case answer.Result.IsError:
			return fmt.Errorf("%s: %v", method, answer.Result.Content)
		default:
			return nil
		}
	}
	return fmt.Errorf("%s: the server has gone: %w", method, errors.Join(s.lines.Err(), io.ErrUnexpectedEOF))
}

func (s *mcpClient) close() error { return errors.Join(s.in.Close(), s.cmd.Wait()) }
