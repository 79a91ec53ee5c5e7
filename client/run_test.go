package client_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/client"
	"github.com/llmsandbox/llmsandbox/httpapi"
	"github.com/llmsandbox/llmsandbox/internal/apitypes"
	"github.com/llmsandbox/llmsandbox/security"
)

// TestRun: what becomes of a program is what the library says, with each option that the API has.
func TestRun(t *testing.T) {
	sb := open(t, use(t), llmsandbox.Options{})
	for name, test := range map[string]struct {
		code string
		opts *llmsandbox.RunOptions
		want llmsandbox.Result
	}{
		"ok":       {"echo out; echo err >&2", nil, llmsandbox.Result{Status: llmsandbox.StatusOK, Stdout: "out\n", Stderr: "err\n"}},
		"error":    {"exit 3", nil, llmsandbox.Result{Status: llmsandbox.StatusError, ExitCode: 3}},
		"killed":   {"kill -SEGV $$", nil, llmsandbox.Result{Status: llmsandbox.StatusKilled, ExitCode: -1}},
		"timeout":  {"echo out; sleep 1000", &llmsandbox.RunOptions{Timeout: 300 * time.Millisecond}, llmsandbox.Result{Status: llmsandbox.StatusTimeout, ExitCode: -1, Stdout: "out\n"}},
		"input":    {"cat; echo $1 $A; pwd | tail -c 4", &llmsandbox.RunOptions{Stdin: strings.NewReader("é\n"), Args: []string{"b"}, Env: map[string]string{"A": "c"}}, llmsandbox.Result{Status: llmsandbox.StatusOK, Stdout: "é\nb c\n"}},
		"language": {"print(1)", &llmsandbox.RunOptions{Language: "py"}, llmsandbox.Result{Status: llmsandbox.StatusOK, Stdout: "1\n"}},
		"files": {`cat "$(dirname "$0")"/a | od -An -c | tr -s ' '`, &llmsandbox.RunOptions{Name: "x.sh", Files: map[string][]byte{"a": {0, 0xff}, "b": []byte("text")}},
			llmsandbox.Result{Status: llmsandbox.StatusOK, Stdout: " \\0 377\n"}},
		"not of HTML": {"echo '<&>\u2028'", nil, llmsandbox.Result{Status: llmsandbox.StatusOK, Stdout: "<&>\u2028\n"}},
		"not UTF-8":   {`printf 'a\xffb'`, nil, llmsandbox.Result{Status: llmsandbox.StatusOK, Stdout: "a\ufffdb"}},
	} {
		t.Run(name, func(t *testing.T) {
			res, err := sb.Run(testContext(t), test.code, test.opts)
			if err != nil || res.Status != test.want.Status || res.ExitCode != test.want.ExitCode || !strings.HasPrefix(res.Stdout, test.want.Stdout) || res.Stderr != test.want.Stderr {
				t.Errorf("got %+v, %v, want %+v", res, err, test.want)
			}
			if res.SandboxID != sb.ID() || res.Backend != "local" || res.Duration <= 0 {
				t.Errorf("got sandbox %q, backend %q, duration %v, want those of sandbox %q", res.SandboxID, res.Backend, res.Duration, sb.ID())
			}
		})
	}
}

// TestWriters: writers get the output as it is written, and their failure changes nothing else.
func TestWriters(t *testing.T) {
	sb := open(t, use(t), llmsandbox.Options{})
	var stdout, stderr bytes.Buffer
	res, err := sb.Run(testContext(t), "echo a; echo b >&2; echo c", &llmsandbox.RunOptions{Stdout: &stdout, Stderr: &stderr})
	if err != nil || !res.OK() || stdout.String() != "a\nc\n" || stderr.String() != "b\n" || res.Stdout != "a\nc\n" || res.Stderr != "b\n" {
		t.Errorf("got %+v, %v, writers %q and %q, want ok, a c and b in both", res, err, &stdout, &stderr)
	}
	stdout.Reset()
	if res, err := sb.Shell(testContext(t), "echo d; echo e >&2", &llmsandbox.ExecOptions{Stdout: &stdout}); err != nil || stdout.String() != "d\n" || res.Stderr != "e\n" {
		t.Errorf("got %+v, %v, writer %q, want d", res, err, &stdout)
	}
	broken := errors.New("disk full")
	for name, w := range map[string]io.Writer{
		"failing": writer(func([]byte) (int, error) { return 0, broken }), "short": writer(func([]byte) (int, error) { return 0, nil }),
		"panicking": writer(func([]byte) (int, error) { panic("no") }),
	} {
		res, err := sb.Run(testContext(t), "echo a; exit 3", &llmsandbox.RunOptions{Stdout: w})
		if !errors.Is(err, llmsandbox.ErrOutput) || errors.Is(err, broken) != (name == "failing") || res.Status != llmsandbox.StatusError || res.ExitCode != 3 || res.Stdout != "a\n" {
			t.Errorf("%s: got %+v, %v, want exit code 3 and ErrOutput", name, res, err)
		}
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

// TestStream: output comes while the program runs, and its result last.
func TestStream(t *testing.T) {
	sb := open(t, use(t), llmsandbox.Options{})
	var also bytes.Buffer
	got := ""
	ended := 0
	// The program goes on only once its first output has been seen here.
	for e, err := range sb.Stream(testContext(t), "echo a; until [ -e go ]; do :; done; echo b", &llmsandbox.RunOptions{Stdout: &also}) {
		switch e.Kind {
		case llmsandbox.EventStdout:
			if got += string(e.Data); got == "a\n" {
				if err := sb.WriteFile(testContext(t), "go", nil); err != nil {
					t.Fatal(err)
				}
			}
		case llmsandbox.EventDone:
			if ended++; err != nil || !e.Result.OK() || e.Result.Stdout != "a\nb\n" {
				t.Errorf("got %+v, %v, want ok with all output", e.Result, err)
			}
		default:
			t.Errorf("got %+v, want nothing else", e)
		}
	}
	if got != "a\nb\n" || also.String() != got || ended != 1 {
		t.Errorf("got %q, the writer %q, and %d ends, want a b and one", got, &also, ended)
	}
	for e, err := range sb.Stream(testContext(t), "true", &llmsandbox.RunOptions{Dir: "none"}) {
		if e.Kind != llmsandbox.EventDone || !errors.Is(err, llmsandbox.ErrWorkdir) || e.Result.Status != llmsandbox.StatusSetupFailed {
			t.Errorf("got %+v, %v, want setup_failed and ErrWorkdir", e.Result, err)
		}
	}
}

// TestStreamEndsEarly: a loop that ends has the program killed.
func TestStreamEndsEarly(t *testing.T) {
	sb := open(t, use(t), llmsandbox.Options{})
	for e, err := range sb.Stream(testContext(t), "echo up; exec sleep 1000", nil) {
		if err != nil || e.Kind != llmsandbox.EventStdout {
			t.Fatalf("got %+v, %v, want output", e, err)
		}
		break
	}
	// It ends when nothing of the other program is left, since that is what it waits for.
	if res, err := sb.Shell(testContext(t), "while pgrep -x sleep >/dev/null; do :; done; echo gone", nil); err != nil || res.Stdout != "gone\n" {
		t.Errorf("got %+v, %v, want gone", res, err)
	}
}

// TestContextEnds: the outcome of a run whose context has ended is not known.
func TestContextEnds(t *testing.T) {
	sb := open(t, use(t), llmsandbox.Options{})
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(testContext(t))
	defer cancel(nil)
	stop := writer(func(p []byte) (int, error) { cancel(why); return len(p), nil })
	res, err := sb.Run(ctx, "echo up; exec sleep 1000", &llmsandbox.RunOptions{Stdout: stop})
	if res.Status != llmsandbox.StatusLost || !errors.Is(err, why) || errors.Is(err, llmsandbox.ErrLost) {
		t.Errorf("got %+v, %v, want lost, and the context's error", res, err)
	}
	res, err = sb.Run(ctx, "true", nil)
	if res.Status != llmsandbox.StatusSetupFailed || !errors.Is(err, why) {
		t.Errorf("got %+v, %v, want setup_failed, and the context's error", res, err)
	}
	waiting, out := io.Pipe()
	defer out.Close()
	if res, err = sb.Run(ctx, "true", &llmsandbox.RunOptions{Stdin: waiting}); res.Status != llmsandbox.StatusSetupFailed || !errors.Is(err, why) {
		t.Errorf("got %+v, %v, want setup_failed, and the context's error", res, err)
	}
}

// TestExec: a program with its arguments, and a line for the shell.
func TestExec(t *testing.T) {
	sb := open(t, use(t), llmsandbox.Options{})
	opts := func() *llmsandbox.ExecOptions {
		return &llmsandbox.ExecOptions{Stdin: strings.NewReader("in\n"), Env: map[string]string{"A": "b"}, Timeout: time.Minute}
	}
	if res, err := sb.Exec(testContext(t), []string{"sh", "-c", "cat; echo $A $1", "sh", "x y"}, opts()); err != nil || res.Stdout != "in\nb x y\n" {
		t.Errorf("got %+v, %v, want in, and b x y", res, err)
	}
	if res, err := sb.Shell(testContext(t), "cat | tr i o; exit 3", opts()); err != nil || res.Stdout != "on\n" || res.ExitCode != 3 {
		t.Errorf("got %+v, %v, want on, and exit code 3", res, err)
	}
	for name, run := range map[string]func() (*llmsandbox.Result, error){
		"no argv": func() (*llmsandbox.Result, error) { return sb.Exec(testContext(t), nil, nil) },
		"no name": func() (*llmsandbox.Result, error) { return sb.Exec(testContext(t), []string{""}, nil) },
		"no line": func() (*llmsandbox.Result, error) { return sb.Shell(testContext(t), " \n", nil) },
	} {
		if res, err := run(); !errors.Is(err, llmsandbox.ErrEmptyCommand) || res.Status != llmsandbox.StatusSetupFailed {
			t.Errorf("%s: got %+v, %v, want ErrEmptyCommand", name, res, err)
		}
	}
}

// TestOneShot: a program without a sandbox of the caller's.
func TestOneShot(t *testing.T) {
	c := use(t)
	res, err := c.Run(testContext(t), "echo $A", &llmsandbox.Options{Language: "bash", Env: map[string]string{"A": "b"}, Limits: llmsandbox.Limits{Memory: 256 << 20, Timeout: time.Minute}})
	if err != nil || !res.OK() || res.Stdout != "b\n" || res.Language != "bash" {
		t.Errorf("got %+v, %v, want ok and b", res, err)
	}
	large := connect(t, c.String(), key, client.Options{MaxResult: math.MaxInt64})
	if res, err := large.Run(testContext(t), "print(1)", nil); err != nil || res.Stdout != "1\n" {
		t.Errorf("got %+v, %v, want ok and 1", res, err)
	}
	if res, err := c.Run(testContext(t), "", &llmsandbox.Options{Language: "cobol"}); !errors.Is(err, llmsandbox.ErrUnknownLanguage) || res.Status != llmsandbox.StatusSetupFailed {
		t.Errorf("got %+v, %v, want ErrUnknownLanguage", res, err)
	}
	if list, err := c.List(testContext(t), nil); err != nil || len(list) != 0 {
		t.Errorf("got %v, %v, want no sandbox left", list, err)
	}
}

// TestUnsupported: every option that the API does not have is refused by its name, and what it has is not.
func TestUnsupported(t *testing.T) {
	c := use(t)
	sb := open(t, c, llmsandbox.Options{})
	run := func(o any) error { _, err := sb.Run(testContext(t), "true", o.(*llmsandbox.RunOptions)); return err }
	exec := func(o any) error {
		_, err := sb.Exec(testContext(t), []string{"true"}, o.(*llmsandbox.ExecOptions))
		return err
	}
	for _, test := range []struct {
		name    string
		options any
		has     []string
		call    func(any) error
	}{
		{"Options.", llmsandbox.Options{}, []string{
			"Language", "Image", "Limits", "Env", "Network", "Libraries", "Environment", "Labels", "Lifetime", "IdleTimeout", "Resettable",
			"Template", "Imports", "Secrets", "Artifacts", "Workdir", "User", "Sudo", "WritableRoot", "BestEffort", "Volumes",
		}, func(o any) error {
			_, err := c.Open(testContext(t), o.(*llmsandbox.Options))
			return err
		}},
		{"Options.", llmsandbox.Options{}, []string{"Language", "Image", "Limits", "Env", "Network", "Libraries", "Environment", "Volumes"}, func(o any) error {
			_, err := c.Run(testContext(t), "true", o.(*llmsandbox.Options))
			return err
		}},
		{"RunOptions.", llmsandbox.RunOptions{}, []string{"Language", "Name", "Files", "Args", "Env", "Dir", "Stdin", "Stdout", "Stderr", "Timeout", "Libraries"}, run},
		{"ExecOptions.", llmsandbox.ExecOptions{}, []string{"Env", "Dir", "Stdin", "Stdout", "Stderr", "Timeout"}, exec},
		{"KernelOptions.", llmsandbox.KernelOptions{}, []string{"Env", "Dir", "Libraries", "Plain"}, func(o any) error {
			_, err := sb.Kernel(testContext(t), "python", o.(*llmsandbox.KernelOptions))
			return err
		}},
		{"KernelOptions.", llmsandbox.KernelOptions{}, nil, func(o any) error {
			_, err := sb.AttachKernel(testContext(t), "x", o.(*llmsandbox.KernelOptions), nil)
			return err
		}},
		{"CellOptions.", llmsandbox.CellOptions{}, nil, func(o any) error {
			_, err := sb.AttachKernel(testContext(t), "x", nil, o.(*llmsandbox.CellOptions))
			return err
		}},
		{"CellOptions.", llmsandbox.CellOptions{}, []string{"Stdout", "Stderr", "Timeout"}, func(o any) error {
			_, err := new(client.Kernel).Run(testContext(t), "1", o.(*llmsandbox.CellOptions))
			return err
		}},
		{"InstallOptions.", llmsandbox.InstallOptions{}, nil, func(o any) error {
			return sb.Install(testContext(t), []string{"x"}, o.(*llmsandbox.InstallOptions))
		}},
		{"Program.", security.Program{}, []string{"Language", "Code"}, func(o any) error {
			_, err := c.Check(testContext(t), "", *o.(*security.Program))
			return err
		}},
		{"Network.", llmsandbox.Network{}, []string{"Mode", "Allow"}, func(o any) error { return sb.SetNetwork(testContext(t), *o.(*llmsandbox.Network)) }},
	} {
		for f := range reflect.TypeOf(test.options).Fields() {
			if !f.IsExported() || slices.Contains(test.has, f.Name) {
				continue
			}
			o := reflect.New(reflect.TypeOf(test.options))
			fill(o.Elem().FieldByIndex(f.Index))
			if err := test.call(o.Interface()); !errors.Is(err, llmsandbox.ErrUnsupported) || !strings.Contains(err.Error(), test.name+f.Name) {
				t.Errorf("%s%s: got %v, want ErrUnsupported that names it", test.name, f.Name, err)
			}
		}
	}
	for want, call := range map[string]func() error{
		"Options.Limits.Memory": func() error {
			_, err := c.Open(testContext(t), &llmsandbox.Options{Limits: llmsandbox.Limits{Memory: llmsandbox.Unlimited}})
			return err
		},
		"Options.Limits.CPUs": func() error {
			_, err := c.Run(testContext(t), "", &llmsandbox.Options{Limits: llmsandbox.Limits{CPUs: llmsandbox.Unlimited}})
			return err
		},
		"Options.Limits.Timeout": func() error {
			_, err := c.Open(testContext(t), &llmsandbox.Options{Limits: llmsandbox.Limits{Timeout: llmsandbox.Unlimited}})
			return err
		},
		"Options.Limits.Output": func() error {
			_, err := c.Run(testContext(t), "", &llmsandbox.Options{Limits: llmsandbox.Limits{Output: 1}})
			return err
		},
		"Options.Network.Roots": func() error {
			o := &llmsandbox.Options{}
			fill(reflect.ValueOf(&o.Network.Roots).Elem())
			_, err := c.Open(testContext(t), o)
			return err
		},
		"RunOptions.Timeout":  func() error { return run(&llmsandbox.RunOptions{Timeout: llmsandbox.Unlimited}) },
		"ExecOptions.Timeout": func() error { return exec(&llmsandbox.ExecOptions{Timeout: llmsandbox.Unlimited}) },
		"Code":                func() error { _, err := sb.Run(testContext(t), "\xff", nil); return err },
		"Stdin":               func() error { return run(&llmsandbox.RunOptions{Stdin: strings.NewReader("\xff")}) },
		"Env":                 func() error { return run(&llmsandbox.RunOptions{Env: map[string]string{"A": "\xff"}}) },
		"Argv":                func() error { _, err := sb.Exec(testContext(t), []string{"true", "\xff"}, nil); return err },
		"without one":         func() error { return sb.SetDeadline(testContext(t), time.Time{}) },
	} {
		if err := call(); !errors.Is(err, llmsandbox.ErrUnsupported) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want ErrUnsupported that names it", want, err)
		}
	}
	// A list of none is none.
	if err := exec(&llmsandbox.ExecOptions{Env: map[string]string{}}); err != nil {
		t.Errorf("got %v, want no error", err)
	}
	if sb, err := c.Open(testContext(t), &llmsandbox.Options{Language: "bash", Secrets: []llmsandbox.Secret{}}); err != nil {
		t.Errorf("got %v, want no error", err)
	} else if err := sb.Close(); err != nil {
		t.Error(err)
	}
}

// fill makes a value one that is not zero.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString("x")
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.Zero(v.Type().Key()), reflect.Zero(v.Type().Elem()))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fill(v.Field(i))
				return
			}
		}
	case reflect.Func:
		v.Set(reflect.MakeFunc(v.Type(), func([]reflect.Value) []reflect.Value { panic("it is called") }))
	case reflect.Interface:
		v.Set(reflect.ValueOf(ofNone{}))
	default:
		panic("no value of " + v.Type().String())
	}
}

// TestInput: input that is too long or fails is not sent.
func TestInput(t *testing.T) {
	sb := open(t, use(t), llmsandbox.Options{})
	if res, err := sb.Run(testContext(t), strings.Repeat("#", apitypes.MaxBody), nil); !errors.Is(err, llmsandbox.ErrTooLarge) || res.Status != llmsandbox.StatusSetupFailed {
		t.Errorf("code: got %s, %v, want setup_failed and ErrTooLarge", res.Status, err)
	}
	if res, err := sb.Run(testContext(t), "", &llmsandbox.RunOptions{Dir: "a", Timeout: time.Duration(math.MaxInt64)}); err == nil || res.Status != llmsandbox.StatusSetupFailed {
		t.Errorf("timeout: got %s, %v, want setup_failed", res.Status, err)
	}
	broken := errors.New("no more")
	for name, test := range map[string]struct {
		input io.Reader
		want  error
	}{
		"long":    {endless{}, llmsandbox.ErrTooLarge},
		"failing": {io.MultiReader(strings.NewReader("a"), reader(func([]byte) (int, error) { return 0, broken })), broken},
	} {
		res, err := sb.Exec(testContext(t), []string{"cat"}, &llmsandbox.ExecOptions{Stdin: test.input})
		if !errors.Is(err, test.want) || res.Status != llmsandbox.StatusSetupFailed {
			t.Errorf("%s: got %+v, %v, want setup_failed and %v", name, res, err, test.want)
		}
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { clear(p); return len(p), nil }

type reader func([]byte) (int, error)

func (r reader) Read(p []byte) (int, error) { return r(p) }

// TestLostByServer: a run whose sandbox is removed is lost.
func TestLostByServer(t *testing.T) {
	c := connect(t, serve(t, httpapi.Config{}), key, client.Options{})
	sb := open(t, c, llmsandbox.Options{})
	other, err := c.Attach(testContext(t), sb.ID())
	if err != nil {
		t.Fatal(err)
	}
	remove := writer(func(p []byte) (int, error) {
		if err := other.Destroy(testContext(t)); err != nil {
			t.Error(err)
		}
		return len(p), nil
	})
	res, err := sb.Run(testContext(t), "echo up; exec sleep 1000", &llmsandbox.RunOptions{Stdout: remove})
	if res.Status != llmsandbox.StatusLost || !errors.Is(err, llmsandbox.ErrLost) {
		t.Errorf("got %+v, %v, want lost and ErrLost", res, err)
	}
}
