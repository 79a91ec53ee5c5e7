//go:build linux

package engine

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moby/moby/api/types/container"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/backend/engine"
	"github.com/llmsandbox/llmsandbox/internal/testengine"
	"github.com/llmsandbox/llmsandbox/internal/testfaults"
	"github.com/llmsandbox/llmsandbox/internal/testimage"
	"github.com/llmsandbox/llmsandbox/internal/testpackage"
)

// kept are options of a sandbox that works in a container's directory.
func kept(b *engine.Backend, lang, dir string) llmsandbox.Options {
	return llmsandbox.Options{Backend: b, Language: lang, Workdir: dir, KeepFiles: true, Limits: llmsandbox.Limits{Timeout: llmsandbox.Unlimited}}
}

// shellIn runs a script in a container, without a sandbox, and returns what it prints.
func shellIn(t *testing.T, e *testengine.Engine, id, script string) string {
	t.Helper()
	out, err := dockerCommand(testfaults.Context(t), e, "exec", id, "sh", "-c", script).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return string(out)
}

// TestKeepFiles works in a directory of a container, whose files are there before and after.
func TestKeepFiles(t *testing.T) {
	onEachEngine(t, func(t *testing.T, e *testengine.Engine) {
		leakFree(t)
		ctx := testfaults.Context(t)
		id := foreignContainer(t, newClient(t, e), container.Config{Image: e.Images(t)("python"), Cmd: strings.Fields(own)}, container.HostConfig{}, false)
		b := newBackend(t, e, engine.Options{Container: id})
		shellIn(t, e, id, "mkdir -p /sandbox/real && ln -s real /sandbox/link && touch /sandbox/file && mkdir -m 0751 /sandbox/real/there && echo theirs >/sandbox/real/there/old.txt")
		for _, dir := range []string{"/sandbox/new/deep", "/sandbox/link/there"} {
			o := kept(b, "python", dir)
			sb, err := llmsandbox.Open(ctx, &o)
			if err != nil {
				t.Fatal(err)
			}
			res, err := sb.Run(ctx, `
import os
open("by-code.txt", "w").write("code")
os.mkdir("artifacts")
open("artifacts/a.txt", "w").write("artifact")
print(os.getcwd() == os.path.realpath(`+"'"+dir+"'"+`), os.path.expanduser("~").startswith(os.getcwd()), os.environ["TMPDIR"].startswith(os.getcwd()))
import by_caller
`, nil)
			if err != nil || !strings.Contains(res.Stderr, "No module named 'by_caller'") || res.Stdout != "True False False\n" {
				t.Errorf("a run: %v, %+v, want Stdout = \"True False False\\n\", and that there is no module", err, res)
			}
			if len(res.Artifacts) != 1 || string(res.Artifacts[0].Data) != "artifact" {
				t.Errorf("artifacts %+v, want one", res.Artifacts)
			}
			if err := sb.WriteFile(ctx, "by_caller.py", []byte("print('imported')")); err != nil {
				t.Error(err)
			}
			k, err := sb.Kernel(ctx, "python", nil)
			if err != nil {
				t.Fatal(err)
			}
			if cell, err := k.Run(ctx, "import by_caller", nil); err != nil || cell.Stdout != "imported\n" {
				t.Errorf("a cell: %v, %+v, want Stdout = \"imported\\n\"", err, cell)
			}
			if err := sb.Reset(ctx); !errors.Is(err, llmsandbox.ErrInvalid) {
				t.Errorf("reset: %v, want %v", err, llmsandbox.ErrInvalid)
			}
			testfaults.Close(t, sb)
			testfaults.AwaitDone(t, sb)
		}
		want := "__pycache__\nartifacts\nby-code.txt\nby_caller.py\n"
		if got := shellIn(t, e, id, "ls -A /sandbox/new/deep"); got != want {
			t.Errorf("what is in the new directory:\n%s, want\n%s", got, want)
		}
		if got := shellIn(t, e, id, "ls -A /sandbox/real/there; stat -c %a /sandbox/real/there; readlink /sandbox/link; cat /sandbox/real/there/old.txt"); got != want+"old.txt\n751\nreal\ntheirs\n" {
			t.Errorf("what is in the directory that was there:\n%s, want\n%s", got, want+"old.txt\n751\nreal\ntheirs\n")
		}
		if left := shellIn(t, e, id, "ls -Ad /tmp/sandbox-* /tmp/.llmsandbox-[lr]* 2>/dev/null; true"); left != "" {
			t.Errorf("left in /tmp: %s, want nothing", left)
		}
		for dir, want := range map[string]string{"/usr/nope": "permission denied", "/sandbox/file": "not a directory"} {
			o := kept(b, "python", dir)
			sb, err := llmsandbox.Open(ctx, &o)
			if err == nil {
				testfaults.Close(t, sb)
			}
			if err == nil || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want its name and %q", dir, err, want)
			}
		}
		if left := shellIn(t, e, id, "ls -Ad /tmp/sandbox-* 2>/dev/null; true"); left != "" {
			t.Errorf("left in /tmp of sandboxes that were not opened: %s, want nothing", left)
		}
	})
}

// TestKeepLibraries installs libraries below a directory of a container, once.
func TestKeepLibraries(t *testing.T) {
	wheels, packages := t.TempDir(), t.TempDir()
	testpackage.Wheel(t, wheels, "tiny", "1.0", map[string]string{"tiny.py": "answer = 42\n"})
	testpackage.NPM(t, packages, "tiny", "1.0.0", map[string]string{"index.js": "module.exports = 42\n"})
	onEachEngine(t, func(t *testing.T, e *testengine.Engine) {
		for lang, c := range map[string]struct{ local, code string }{
			"python":     {wheels, "import tiny; print(tiny.answer)"},
			"javascript": {packages, "console.log(require('tiny'))"},
		} {
			t.Run(lang, func(t *testing.T) {
				leakFree(t)
				ctx := testfaults.Context(t)
				id := foreignContainer(t, newClient(t, e), container.Config{Image: e.Images(t)(lang), Cmd: strings.Fields(own)}, container.HostConfig{}, false)
				before := volumes(t, newClient(t, e))
				for i, libraries := range [][]string{{"tiny"}, {"tiny"}, nil} {
					o := kept(newBackend(t, e, engine.Options{Container: id}), lang, "/sandbox/project")
					o.Libraries, o.Install.Local = libraries, c.local
					installs := make(chan string, 1000)
					o.Progress = func(p backend.Progress) { installs <- p.Stage }
					sb, err := llmsandbox.Open(ctx, &o)
					if err != nil {
						t.Fatal(err)
					}
					if installed := len(installs) > 0; installed != (i == 0) {
						t.Errorf("sandbox %d: installed %t, want %t", i, installed, i == 0)
					}
					if res, err := sb.Run(ctx, c.code, nil); err != nil || res.Stdout != "42\n" {
						t.Errorf("sandbox %d: %v, %+v, want Stdout = \"42\\n\"", i, err, res)
					}
					var failed *llmsandbox.InstallError
					if libraries == nil {
						if err := sb.Install(ctx, []string{"missing-thing"}, nil); !errors.As(err, &failed) {
							t.Errorf("a package that is not there: %v, want an InstallError", err)
						}
					}
					testfaults.Close(t, sb)
					testfaults.AwaitDone(t, sb)
				}
				if got := strings.Fields(shellIn(t, e, id, "ls -A /sandbox/project; ls -A /sandbox/project/.llmsandbox/lib")); len(got) != 3 || got[2] != got[1]+".installed" {
					t.Errorf("the directory has %q, want .llmsandbox, and one list with its mark", got)
				}
				if left := shellIn(t, e, id, "ls -Ad /tmp/sandbox-* /tmp/.llmsandbox-[lr]* 2>/dev/null; true"); left != "" {
					t.Errorf("left in /tmp: %s, want nothing", left)
				}
				if after := volumes(t, newClient(t, e)); after != before {
					t.Errorf("volumes %q, want %q", after, before)
				}
			})
		}
	})
}

// TestKeepLibrariesOfIndex installs libraries from where this machine gets them, beside a sandbox that has a network.
func TestKeepLibrariesOfIndex(t *testing.T) {
	index := t.TempDir()
	for _, name := range []string{"tiny", "other"} {
		dir := filepath.Join(index, name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		testpackage.Wheel(t, dir, name, "1.0", map[string]string{name + ".py": "answer = 21\n"})
	}
	listener, err := net.Listen("tcp", "127.0.0.2:0") // for 127.0.0.1, tools use no proxy
	if err != nil {
		t.Fatal(err)
	}
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: http.FileServer(http.Dir(index))}}
	server.Start()
	defer server.Close()
	for name, value := range map[string]string{"PIP_INDEX_URL": server.URL, "PIP_EXTRA_INDEX_URL": "", "PIP_FIND_LINKS": ""} {
		t.Setenv(name, value)
	}
	onEachEngine(t, func(t *testing.T, e *testengine.Engine) {
		for _, network := range []container.NetworkMode{"none", "host"} {
			t.Run(string(network), func(t *testing.T) {
				leakFree(t)
				ctx := testfaults.Context(t)
				id := foreignContainer(t, newClient(t, e), container.Config{Image: e.Images(t)("python"), Cmd: strings.Fields(own)}, container.HostConfig{NetworkMode: network}, false)
				o := kept(newBackend(t, e, engine.Options{Container: id}), "python", "/sandbox/project")
				o.Libraries = []string{"tiny"}
				if network == "none" { // else the port of its proxy is this machine's
					o.Network = llmsandbox.Network{Mode: llmsandbox.NetworkAllow, Allow: []string{"example.com"}}
				}
				sb, err := llmsandbox.Open(ctx, &o)
				if err != nil {
					t.Fatal(err)
				}
				defer testfaults.Close(t, sb)
				if err := sb.Install(ctx, []string{"other"}, nil); err != nil {
					t.Error(err)
				}
				if res, err := sb.Run(ctx, "import tiny, other; print(tiny.answer + other.answer)", nil); err != nil || res.Stdout != "42\n" {
					t.Errorf("%v, %+v, want Stdout = \"42\\n\"", err, res)
				}
			})
		}
	})
}

// Sandboxes that have a container of their own keep no files.
func TestKeepFilesNeedsContainer(t *testing.T) {
	path := testimage.Save(t, faultsImage, testimage.Busybox(t, nil))
	onEachEngine(t, func(t *testing.T, e *testengine.Engine) {
		e.Load(t, path)
		o := kept(newBackend(t, e, engine.Options{}), "bash", "/srv/project")
		o.Image = faultsImage
		if sb, err := llmsandbox.Open(testfaults.Context(t), &o); !errors.Is(err, llmsandbox.ErrUnsupported) || !strings.Contains(err.Error(), "existing container") {
			t.Errorf("%v, want %v that names an existing container", err, llmsandbox.ErrUnsupported)
			if err == nil {
				testfaults.Close(t, sb)
			}
		}
	})
}
