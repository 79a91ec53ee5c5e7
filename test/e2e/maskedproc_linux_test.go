package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend/local"
	"github.com/llmsandbox/llmsandbox/internal/testimage"
)

const envMasked = "LLMSANDBOX_TEST_MASKED_PROC"

// TestMaskedProc runs TestInMaskedProc where something is mounted over a part of /proc, as in a container: there the kernel
// refuses user namespaces a /proc of their own.
func TestMaskedProc(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can mask a part of /proc")
	}
	cmd := exec.CommandContext(testContext(t), "/proc/self/exe", "-test.v", "-test.run", "^TestInMaskedProc$")
	cmd.Env = append(os.Environ(), envMasked+"=canary-5b1f90")
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
}

func TestInMaskedProc(t *testing.T) {
	if os.Getenv(envMasked) == "" {
		t.Skip("TestMaskedProc runs it")
	}
	if err := unix.Mount("tmpfs", "/proc/tty", "tmpfs", unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	b := local.New(&local.Options{StateDir: filepath.Join(t.TempDir(), "state")})
	for name, o := range map[string]llmsandbox.Options{
		"closed by Landlock": {Backend: b},
		"it is empty":        {Backend: b, WritableRoot: true},
	} {
		t.Run(name, func(t *testing.T) {
			maskedLanguages(t, o)
			sb := open(t, o)
			if c, ok := sb.Capabilities().Get("proc"); !ok || c.Enforced || !strings.Contains(c.Why, name) || c.Fix == "" {
				t.Errorf("%+v, want a control that is not enforced, why and what to do", c)
			}
			maskedSecrets(t, sb)
			maskedKills(t, sb)
			maskedKernel(t, sb)
			if err := sb.Prepare(testContext(t)); err != nil { // it forks from now on
				t.Error(err)
			}
			maskedKills(t, sb)
			if err := sb.WriteFile(testContext(t), "f", []byte("x")); err != nil {
				t.Error(err)
			}
			if err := sb.Chmod(testContext(t), "f", 0o600); err != nil {
				t.Error(err)
			}
			wantStdout(t, run(t, sb, "import os; print(open('f').read(), oct(os.stat('f').st_mode))", nil), "x 0o100600\n")
		})
	}
	o := llmsandbox.Options{Backend: b}
	wantStdout(t, run(t, open(t, o), "cat <(echo one); echo two >/dev/stdout; cat /dev/stdin; readlink /proc/self/exe", &llmsandbox.RunOptions{Language: "bash", Stdin: strings.NewReader("three\n")}),
		"one\ntwo\nthree\n/usr/bin/readlink\n")
	t.Run("image", func(t *testing.T) {
		o.Image = testimage.Layout(t, map[string]v1.Image{"one": testimage.Busybox(t, nil)}) + ":one"
		o.Language = "bash"
		shellIn(t, open(t, o), "cat /proc/1/cmdline /proc/self/status 2>/dev/null; cat /srv/motd; id -u; ls / >/dev/null && echo listed", "from the image\n1000\nlisted\n")
		o.User, o.Sudo = "0", true
		shellIn(t, open(t, o), "cat /proc/1/cmdline /proc/1/environ /proc/self/status 2>/dev/null; id -u", "0\n")
	})
	t.Run("zygote", func(t *testing.T) {
		z, err := llmsandbox.NewZygote(testContext(t), &llmsandbox.Options{Backend: b, BestEffort: true})
		if err == nil {
			z.Close()
		}
		if !errors.Is(err, llmsandbox.ErrUnsupported) || !strings.Contains(err.Error(), "systempaths=unconfined") {
			t.Errorf("%v, want what to do about /proc", err)
		}
	})
}

func maskedLanguages(t *testing.T, o llmsandbox.Options) {
	for lang, code := range map[string]string{
		"python": `print("hello")`, "javascript": `console.log("hello")`, "ruby": `puts "hello"`, "r": `cat("hello\n")`, "bash": `echo hello`,
		"java": `public class Greeter { public static void main(String[] a) { System.out.println("hello"); } }`,
		"cpp":  "#include <iostream>\nint main() { std::cout << \"hello\\n\"; }",
		"go":   "package main\nimport \"fmt\"\nfunc main() { fmt.Println(\"hello\") }",
	} {
		t.Run(lang, func(t *testing.T) {
			o.Language = lang
			wantStdout(t, run(t, open(t, o), code, nil), "hello\n")
		})
	}
}

// maskedSecrets looks for what /proc has of processes outside, and of other ones inside.
func maskedSecrets(t *testing.T, sb *llmsandbox.Sandbox) {
	t.Helper()
	const script = `ln -sf /proc /tmp/p
cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ /proc/[0-9]*/stat /proc/[0-9]*/status /proc/[0-9]*/mountinfo /proc/[0-9]*/maps /proc/[0-9]*/comm /tmp/p/1/cmdline /proc/self/mem 2>/dev/null
for d in /proc/[0-9]*; do [ "$(readlink "$d/ns/pid")" = "$(readlink /proc/self/ns/pid)" ] || readlink "$d/exe" "$d/cwd" "$d/root" "$d/ns/pid" "$d"/fd/*; done
for f in /proc/[0-9]*/oom_score_adj /proc/sys/kernel/hostname /proc/sysrq-trigger; do (echo 1 >"$f") 2>/dev/null && echo "wrote $f"; done
for d in /proc/[0-9]*; do (cd "$d/root" 2>/dev/null && [ "$(readlink "$d/ns/pid")" != "$(readlink /proc/self/ns/pid)" ] && echo "entered $d"); done
head -c 9 /proc/meminfo`
	if res := run(t, sb, script, &llmsandbox.RunOptions{Language: "bash"}); res.Stdout != "MemTotal:" {
		t.Errorf("stdout %q, want MemTotal: alone", clip(res.Stdout))
	}
}

// maskedKills has runs end with all that they have started, and with nothing else.
func maskedKills(t *testing.T, sb *llmsandbox.Sandbox) {
	t.Helper()
	mark := fmt.Sprint(time.Now().UnixNano())
	other, err := sb.Start(testContext(t), []string{"sleep", "1" + mark}, nil)
	if err != nil {
		t.Fatal(err)
	}
	wantStdout(t, run(t, sb, `print("hello")`, nil), "hello\n")
	tree := `for i in 1 2 3; do setsid sh -c '(sleep 2MARK & sleep 2MARK) & sleep 2MARK' & done; `
	for end, want := range map[string]llmsandbox.Status{"exec sleep 2MARK": llmsandbox.StatusTimeout, "exit 0": llmsandbox.StatusOK} {
		res := run(t, sb, strings.ReplaceAll(tree+end, "MARK", mark), &llmsandbox.RunOptions{Language: "bash", Timeout: time.Second})
		if res.Status != want {
			t.Errorf("%s: status %s, want %s", end, res.Status, want)
		}
		if n := withArgument(t, "2"+mark); n != 0 {
			t.Errorf("%s: %d processes of it are left, want none", end, n)
		}
	}
	if n := withArgument(t, "1"+mark); n != 1 {
		t.Errorf("the other process is there %d times, want once", n)
	}
	list, err := sb.Processes(testContext(t))
	running := func(p llmsandbox.ProcessInfo) bool { return p.Running }
	if i := slices.IndexFunc(list, running); err != nil || i < 0 || list[i].ID != other.ID() || slices.ContainsFunc(list[i+1:], running) {
		t.Errorf("%+v, %v, want that the other process alone runs", list, err)
	}
	if err := other.Kill(testContext(t)); err != nil {
		t.Error(err)
	}
	if res, err := other.Wait(testContext(t)); err != nil || res.Status != llmsandbox.StatusKilled {
		t.Errorf("%+v, %v, want that it was killed", res, err)
	}
}

// withArgument counts the processes with an argument.
func withArgument(t *testing.T, argument string) (n int) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if text, _ := os.ReadFile(f); strings.Contains(string(text), "\x00"+argument+"\x00") { // one that has ended has none
			n++
		}
	}
	return n
}

// maskedKernel keeps a value between cells, and ends one that does not.
func maskedKernel(t *testing.T, sb *llmsandbox.Sandbox) {
	t.Helper()
	k, err := sb.Kernel(testContext(t), "python", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	for _, c := range []struct{ code, want string }{{"n = 41", ""}, {"print(n + 1)", "42\n"}} {
		if cell, err := k.Run(testContext(t), c.code, nil); err != nil || cell.Stdout != c.want {
			t.Errorf("%s: %+v, %v, want stdout %q", c.code, cell, err, c.want)
		}
	}
}
