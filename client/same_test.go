package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/backend/local"
	"github.com/llmsandbox/llmsandbox/client"
	"github.com/llmsandbox/llmsandbox/httpapi"
)

// A kernel is what the library's and the client's have in common.
type kernel interface {
	Info() llmsandbox.KernelInfo
	Run(ctx context.Context, code string, opts *llmsandbox.CellOptions) (*llmsandbox.Cell, error)
	Complete(ctx context.Context, code string, cursor int) (llmsandbox.Completion, error)
	Inspect(ctx context.Context, code string, cursor int) (string, error)
	Variables(ctx context.Context) ([]llmsandbox.Variable, error)
	Reset(ctx context.Context) error
	Interrupt(ctx context.Context) error
	Restart(ctx context.Context) error
	Detach(ctx context.Context) error
	Close() error
}

// A sandbox is what the library's and the client's have in common, but for what other tests use.
type sandbox[K kernel] interface {
	Exec(ctx context.Context, argv []string, opts *llmsandbox.ExecOptions) (*llmsandbox.Result, error)
	Kernel(ctx context.Context, lang string, opts *llmsandbox.KernelOptions) (K, error)
	Kernels(ctx context.Context) ([]llmsandbox.KernelInfo, error)
	AttachKernel(ctx context.Context, id string, opts *llmsandbox.KernelOptions, running *llmsandbox.CellOptions) (K, error)
	Usage(ctx context.Context) (backend.Usage, error)
	Processes(ctx context.Context) ([]llmsandbox.ProcessInfo, error)
	Network(ctx context.Context) (llmsandbox.Network, error)
	SetNetwork(ctx context.Context, n llmsandbox.Network) error
	Install(ctx context.Context, libraries []string, opts *llmsandbox.InstallOptions) error
	CopyIn(ctx context.Context, hostPath, path string) (llmsandbox.CopyResult, error)
	CopyOut(ctx context.Context, path, hostPath string) (llmsandbox.CopyResult, error)
	TarOut(ctx context.Context, path, name string, w io.Writer) (llmsandbox.CopyResult, error)
	TarIn(ctx context.Context, r io.Reader, path string) (llmsandbox.CopyResult, error)
	ReadFileRange(ctx context.Context, path string, offset, length int64, w io.Writer) (int64, error)
	Watch(ctx context.Context, path string, recursive bool) (iter.Seq2[llmsandbox.FileEvent, error], error)
	Ports(ctx context.Context) ([]netip.AddrPort, error)
	Close() error
}

// onFirst calls something with the first output.
type onFirst struct {
	do   func()
	text strings.Builder
}

func (w *onFirst) Write(p []byte) (int, error) {
	if w.text.Len() == 0 && w.do != nil {
		w.do()
	}
	return w.text.Write(p)
}

// kindOf is what an error is to a program that looks.
func kindOf(err error) string {
	for _, kind := range []error{llmsandbox.ErrKernelClosed, llmsandbox.ErrDetached, llmsandbox.ErrInvalid, llmsandbox.ErrUnsupported, llmsandbox.ErrUnknownLanguage, llmsandbox.ErrUnsafePath, llmsandbox.ErrNoSafeContent, llmsandbox.ErrLost, fs.ErrNotExist, fs.ErrPermission} {
		if errors.Is(err, kind) {
			return kind.Error()
		}
	}
	if err != nil {
		return "another error: " + err.Error()
	}
	return "no error"
}

// tell uses a sandbox and tells what it sees.
func tell[K kernel](t *testing.T, sb sandbox[K]) (lines []string) {
	ctx := testContext(t)
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	k, err := sb.Kernel(ctx, "python", &llmsandbox.KernelOptions{Plain: true, Env: map[string]string{"A": "b"}, Dir: "."})
	if err != nil {
		t.Fatal(err)
	}
	say("opened %s %s %t", k.Info().Language, k.Info().Flavor, k.Info().Version != "")
	cell := func(code string, opts *llmsandbox.CellOptions) {
		c, err := k.Run(ctx, code, opts)
		say("%q: %s %d %q %q %v %v %t %t, %s", code, c.Status, c.ExitCode, c.Stdout, c.Stderr, c.Value, c.Error, c.Interrupted, c.StateLost, kindOf(err))
	}
	cell("x = 40; print('é')", nil)
	cell("x + 2", nil)
	cell("import socket; s4, s6 = socket.create_server(('127.0.0.1', 8456)), socket.create_server(('::1', 8455), family=socket.AF_INET6)", nil)
	ports, err := sb.Ports(ctx)
	say("ports: %v, %s", ports, kindOf(err))
	var stdout, stderr onFirst
	cell("import sys, os; print(os.environ['A']); print('err', file=sys.stderr)", &llmsandbox.CellOptions{Stdout: &stdout, Stderr: &stderr})
	say("written: %q %q", stdout.text.String(), stderr.text.String())
	interrupted := make(chan error, 1)
	for _, opts := range []*llmsandbox.CellOptions{
		{Timeout: 300 * time.Millisecond}, {Stdout: &onFirst{do: func() { go func() { interrupted <- k.Interrupt(ctx) }() }}},
	} { // where it is interrupted is not the same each time
		c, err := k.Run(ctx, "print('up', flush=True)\nwhile True: pass", opts)
		say("without end: %s %t %t, %s", c.Status, c.Interrupted, c.StateLost, kindOf(err))
	}
	say("interrupt: %s", kindOf(<-interrupted))
	if c, err := k.Run(ctx, "1/0", nil); err != nil || c.Error == nil {
		t.Errorf("got %+v, %v, want an error of the code", c, err)
	} else {
		say("%s %s", c.Error.Name, c.Error.Message)
	}
	completion, err := k.Complete(ctx, "sys.maxs", 8)
	say("complete: %v, %s", completion, kindOf(err))
	_, err = k.Complete(ctx, "é", 5)
	say("complete beyond the end: %s", kindOf(err))
	about, err := k.Inspect(ctx, "len", 3)
	say("inspect: %q, %s", about, kindOf(err))
	variables, err := k.Variables(ctx)
	say("variables: %v, %s", slices.DeleteFunc(variables, func(v llmsandbox.Variable) bool { return v.Name != "x" }), kindOf(err))
	list, err := sb.Kernels(ctx)
	say("kernels: %d, %t, %s", len(list), len(list) == 1 && list[0].ID == k.Info().ID && list[0].Language == "python", kindOf(err))
	id := k.Info().ID
	say("detach: %s", kindOf(k.Detach(ctx)))
	_, err = k.Run(ctx, "x", nil)
	say("run without it: %s, close: %s", kindOf(err), kindOf(k.Close()))
	if k, err = sb.AttachKernel(ctx, id, nil, nil); err != nil {
		t.Fatal(err)
	}
	cell("x", nil)
	say("reset: %s", kindOf(k.Reset(ctx)))
	cell("'x' in globals()", nil)
	say("restart: %s", kindOf(k.Restart(ctx)))
	cell("import sys; 'os' in globals()", nil)
	say("close: %s, %s", kindOf(k.Close()), kindOf(k.Close()))
	cell("1", nil)
	say("reset what is closed: %s", kindOf(k.Reset(ctx)))
	_, err = sb.AttachKernel(ctx, id, nil, nil)
	say("attach to what is closed: %s", kindOf(err))
	_, err = sb.Kernel(ctx, "cobol", nil)
	say("another language: %s", kindOf(err))

	usage, err := sb.Usage(ctx)
	say("usage: %t %t, %s", usage.CPUKnown, usage.MemoryKnown, kindOf(err))
	var running []llmsandbox.ProcessInfo
	var listed error
	until, leave := context.WithCancel(ctx)
	look := &onFirst{do: func() { running, listed = sb.Processes(ctx); leave() }}
	if _, err := sb.Exec(until, []string{"sh", "-c", "echo up; sleep 1000"}, &llmsandbox.ExecOptions{Stdout: look}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	running = slices.DeleteFunc(running, func(p llmsandbox.ProcessInfo) bool { return !slices.Contains(p.Argv, "echo up; sleep 1000") })
	say("processes: %d, %s", len(running), kindOf(listed))
	network, err := sb.Network(ctx)
	say("network: %s %v, %s", network.Mode, network.Allow, kindOf(err))
	say("set the network: %s", kindOf(sb.SetNetwork(ctx, llmsandbox.Network{Mode: llmsandbox.NetworkAllow, Allow: []string{"example.org:443"}})))
	network, err = sb.Network(ctx)
	say("network: %s %v, %s", network.Mode, network.Allow, kindOf(err))
	say("install: %s, %s", kindOf(sb.Install(ctx, nil, nil)), kindOf(sb.Install(ctx, []string{"no name"}, nil)))
	return append(lines, tellFiles(t, sb)...)
}

// tellFiles copies files, reads parts of them and watches them.
func tellFiles[K kernel](t *testing.T, sb sandbox[K]) (lines []string) {
	ctx := testContext(t)
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	shell := func(line string) {
		t.Helper()
		if res, err := sb.Exec(ctx, []string{"sh", "-c", line}, nil); err != nil || !res.OK() {
			t.Fatalf("%s: got %+v, %v, want ok", line, res, err)
		}
	}
	in, out := t.TempDir(), t.TempDir()
	large := strings.Repeat("0123456789", 100_000)
	err := errors.Join(os.WriteFile(in+"/a.txt", []byte("0123456789"), 0o644), os.Mkdir(in+"/sub", 0o755), os.WriteFile(in+"/sub/é", []byte(large), 0o755), os.Symlink("a.txt", in+"/link"))
	if err != nil {
		t.Fatal(err)
	}
	copied := func(what string, res llmsandbox.CopyResult, err error) {
		say("%s: %d files, %d bytes, some left out: %t, %s", what, res.Files, res.Bytes, len(res.Skipped) > 0, kindOf(err))
	}
	tree := func(dir string) {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			info, infoErr := d.Info()
			if err := errors.Join(err, infoErr); err != nil {
				return err
			}
			if !d.IsDir() {
				say("%s %v %d", strings.TrimPrefix(path, dir), info.Mode(), info.Size())
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	from := func(what, path, to string) { res, err := sb.CopyOut(ctx, path, to); copied(what, res, err) }
	to := func(what, path, dest string) { res, err := sb.CopyIn(ctx, path, dest); copied(what, res, err) }
	to("in", in, "project")
	to("one in", in+"/a.txt", "project/one.txt")
	shell("cd project && ln -s a.txt link && ln -s /etc dir && mkfifo fifo && ls -lR >/dev/null")
	from("out", "project", out)
	from("one out", "project/a.txt", out+"/one.txt")
	tree(out)
	to("missing in", in+"/none", "x")
	to("in through a link", in, "project/dir")
	to("in above", in, "../x")
	to("in where nobody may", in, "/usr/x")
	from("missing out", "none", out)
	from("out above", "project/../..", out)
	from("a link out", "project/link", out+"/x")
	from("a fifo out", "project/fifo", out+"/x")
	var archive bytes.Buffer
	_, err = sb.TarOut(ctx, "project/sub", "renamed", &archive)
	say("archive: %s", kindOf(err))
	res, err := sb.TarIn(ctx, &archive, "again")
	copied("unpacked", res, err)
	res, err = sb.TarIn(ctx, strings.NewReader(large), "again")
	say("no archive: %d files, an error: %t", res.Files, err != nil)
	_, err = sb.TarOut(ctx, "none", "", &archive)
	say("archive of none: %s", kindOf(err))
	for _, part := range []struct {
		path           string
		offset, length int64
	}{
		{"project/a.txt", 0, 4}, {"project/a.txt", 8, 100}, {"project/a.txt", 3, 0}, {"project/a.txt", 10, 1}, {"project/a.txt", 1 << 40, 0}, {"project/a.txt", 9, math.MaxInt64},
		{"project/link", 2, 3}, {"project/link", 20, 3}, {"again/renamed/é", 999_990, 0}, {"none", 0, 1}, {"project/a.txt", -1, 1}, {"project/a.txt", 0, -1},
	} {
		var got bytes.Buffer
		n, err := sb.ReadFileRange(ctx, part.path, part.offset, part.length, &got)
		say("%v: %d %q, %s", part, n, got.String(), kindOf(err))
	}
	changes, err := sb.Watch(ctx, "project", true)
	if err != nil {
		t.Fatal(err)
	}
	shell("touch project/sub/new")
	for change, err := range changes {
		say("%v, %s", change, kindOf(err))
		break
	}
	ended, end := context.WithCancel(ctx)
	if changes, err = sb.Watch(ended, "project", false); err != nil {
		t.Fatal(err)
	}
	end()
	for _, err := range changes {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want that of the context", err)
		}
	}
	_, err = sb.Watch(ctx, "none", false)
	say("watch what is missing: %s", kindOf(err))
	return lines
}

// TestSame: a program sees the same of a sandbox of its own and of one of a server.
func TestSame(t *testing.T) {
	require(t, runtime.GOOS == "linux", "the local backend needs Linux")
	own, err := llmsandbox.Open(testContext(t), &llmsandbox.Options{Backend: local.New(&local.Options{StateDir: t.TempDir()}), BestEffort: true})
	if err != nil {
		t.Fatal(err)
	}
	embedded := tell[*llmsandbox.Kernel](t, own)
	if err := own.Close(); err != nil {
		t.Error(err)
	}
	network := llmsandbox.Network{Mode: llmsandbox.NetworkAllow, Allow: []string{"example.org:443"}}
	c := connect(t, serve(t, httpapi.Config{Sandbox: llmsandbox.Options{Network: network}}), key, client.Options{})
	remote := tell[*client.Kernel](t, open(t, c, llmsandbox.Options{Language: "python"}))
	if diff := cmp.Diff(embedded, remote); diff != "" {
		t.Errorf("-embedded +remote:\n%s", diff)
	}
	for _, line := range []string{"kernels: 1, true, no error", "processes: 1, no error", "ports: [[::1]:8455 127.0.0.1:8456], no error", "reset what is closed: " + llmsandbox.ErrKernelClosed.Error()} {
		if !slices.Contains(remote, line) {
			t.Errorf("got\n%s\nwant %q among it", strings.Join(remote, "\n"), line)
		}
	}
}
