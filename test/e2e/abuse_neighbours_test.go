package e2e

import (
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
)

// attacks are programs that take all they can get, for as long as they live.
var attacks = map[string]struct {
	code string
	need string // the control without which it would take the machine's
}{
	"01 fork bomb": {"import os\nwhile True:\n  try: os.fork()\n  except OSError: pass", "pids"},
	"08 disk": {`
import os, time
f = os.open("full", os.O_CREAT | os.O_WRONLY)
while True:
    try: os.write(f, b"x" * (1 << 20))
    except OSError: time.sleep(0.01)`, ""},
	"13 descriptors": {"import os\nkept = []\nwhile True:\n  try: kept.append(os.open('/dev/null', os.O_RDONLY))\n  except OSError: pass", ""},
	"14 flood":       {"import os\nwhile True: os.write(1, b'x' * 65536)", ""},
	"16 spin":        {"import os\nfor _ in range(4): os.fork()\nwhile True: pass", ""},
	"21 memory":      {"kept = []\nwhile True:\n  try: kept.append(bytearray(1 << 20))\n  except MemoryError: pass", "memory"},
}

// TestAbuseNeighbours keeps one sandbox busy with an attack, and meanwhile uses another
// one and the attacked one's own control interface.
func TestAbuseNeighbours(t *testing.T) {
	for name, a := range attacks {
		t.Run(name, func(t *testing.T) {
			good := open(t, llmsandbox.Options{})
			bad := open(t, llmsandbox.Options{Limits: llmsandbox.Limits{
				PIDs: 64, Memory: 128 << 20, Disk: 32 << 20, Output: llmsandbox.Unlimited, CPUs: 0.5,
			}})
			if a.need == "pids" && control(bad, "pids").By == "" || a.need == "memory" {
				needs(t, bad, a.need)
			}
			ctx := testContext(t)
			if err := good.WriteFile(ctx, "kept", []byte("unharmed"), 0o644); err != nil {
				t.Fatal(err)
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				// How it ends is the catalogue's matter.
				_, _ = bad.Run(ctx, a.code, &llmsandbox.RunOptions{Timeout: 3 * time.Second})
			}()
			for rounds := 0; ; rounds++ {
				select {
				case <-done:
					if rounds == 0 {
						t.Error("nothing was tried during the attack")
					}
					answers(t, bad)
					return
				default:
				}
				start := time.Now()
				res := run(t, good, "print(open('kept').read()); open('new', 'w').write('x' * 100000)", nil)
				wantStdout(t, res, "unharmed\n")
				if d := time.Since(start); d > 5*time.Second {
					t.Errorf("the other sandbox took %v for a run", d)
				}
				start = time.Now()
				// 21: the sandbox under attack can still be listed, looked into and told to stop.
				if _, err := bad.ListDir(ctx, "/sandbox"); err != nil {
					t.Errorf("list a folder under attack: %v", err)
				}
				if _, err := llmsandbox.List(ctx, nil); err != nil {
					t.Errorf("list sandboxes: %v", err)
				}
				if d := time.Since(start); d > 5*time.Second {
					t.Errorf("the attacked sandbox took %v to answer", d)
				}
			}
		})
	}
}

// TestAbuse23SlowReader floods a reader that does not read: the program waits, and
// nobody's memory grows.
func TestAbuse23SlowReader(t *testing.T) {
	sb := open(t, llmsandbox.Options{Limits: llmsandbox.Limits{Output: llmsandbox.Unlimited}})
	ctx := testContext(t)
	release := make(chan struct{})
	slow := &stuck{release: release}
	done := make(chan *llmsandbox.Result, 1)
	var before, during runtime.MemStats
	runtime.ReadMemStats(&before)
	go func() {
		res, err := sb.Run(ctx, `
import os
n = 0
while n < 64 << 20:
    n += os.write(1, b"x" * 65536)
    with open("written", "w") as f: f.write(str(n))`, &llmsandbox.RunOptions{Stdout: slow, Timeout: 30 * time.Second})
		if err != nil {
			t.Error(err)
		}
		done <- res
	}()
	var last string
	for range 20 { // until it no longer moves
		time.Sleep(200 * time.Millisecond)
		b, err := sb.ReadFile(ctx, "written")
		if err != nil {
			continue // it has not begun
		}
		if string(b) == last && last != "" {
			break
		}
		last = string(b)
	}
	runtime.ReadMemStats(&during)
	if len(last) == 0 || len(last) > len("9999999") {
		t.Errorf("the program wrote %s bytes to a reader that reads nothing", last)
	}
	if grown := int64(during.HeapAlloc) - int64(before.HeapAlloc); grown > 32<<20 {
		t.Errorf("the caller's heap grew by %d MiB", grown>>20)
	}
	close(release)
	res := <-done
	wantExit(t, res, 0)
	if slow.n != 64<<20 {
		t.Errorf("%d bytes arrived of 64 MiB", slow.n)
	}
}

// stuck is a writer that takes nothing until it is released.
type stuck struct {
	release chan struct{}
	n       int64
}

func (w *stuck) Write(p []byte) (int, error) {
	<-w.release
	w.n += int64(len(p))
	return len(p), nil
}

// TestAbuse26CompileBombs compiles what is made to exhaust a compiler. The C++ ones are
// in the catalogue.
func TestAbuse26CompileBombs(t *testing.T) {
	deepTypes := "package main\n\ntype t0 struct{ a, b int }\n"
	for i := 1; i < 60; i++ {
		deepTypes += strings.ReplaceAll(strings.ReplaceAll("type tN struct{ a, b tM }\n", "N", strconv.Itoa(i)), "M", strconv.Itoa(i-1))
	}
	deepTypes += "func main() { var v, w t59; println(\"compiled\", v == w) }\n"
	for name, c := range map[string]struct{ language, program, code string }{
		"26 go generics":  {"go", "go", "package main\n\ntype T[P any] struct{ f *T[T[P]] }\n\nfunc f[P any](n int) { if n > 0 { f[T[P]](n - 1) } }\n\nfunc main() { f[int](9); println(\"compiled\") }\n"},
		"26 go types":     {"go", "go", deepTypes},
		"26 go embed":     {"go", "go", "package main\n\nimport _ \"embed\"\n\n//go:embed /etc/passwd\nvar s string\n\nfunc main() { println(\"compiled\", s) }\n"},
		"26 go cgo":       {"go", "go", "package main\n\n// #include \"/etc/shadow\"\nimport \"C\"\n\nfunc main() { println(\"compiled\") }\n"},
		"26 java nesting": {"java", "javac", "class A { public static void main(String[] a) { int x = " + strings.Repeat("(", 20000) + "1" + strings.Repeat(")", 20000) + "; System.out.println(\"compiled\"); } }"},
		"26 java inference": {"java", "javac", "import java.util.function.*;\nclass A {\n static <T> T m(Supplier<T> s) { return s.get(); }\n static <T> T m(Function<T, T> s) { return null; }\n" +
			" public static void main(String[] a) { Object o = " + strings.Repeat("m(() -> ", 40) + "1" + strings.Repeat(")", 40) + "; System.out.println(\"done\"); } }"},
	} {
		t.Run(name, func(t *testing.T) {
			requirePrograms(t, c.program)
			sb := open(t, llmsandbox.Options{Language: c.language, Limits: llmsandbox.Limits{Memory: 512 << 20, PIDs: 128}})
			start := time.Now()
			res := run(t, sb, c.code, &llmsandbox.RunOptions{Timeout: 10 * time.Second})
			if d := time.Since(start); d > 15*time.Second {
				t.Errorf("took %v", d)
			}
			if strings.Contains(res.Stdout+res.Stderr, "root:") || strings.Contains(res.Stdout, "compiled") {
				t.Errorf("status %s\nstdout: %s\nstderr: %s", res.Status, clip(res.Stdout), clip(res.Stderr))
			}
			answers(t, sb)
		})
	}
}
