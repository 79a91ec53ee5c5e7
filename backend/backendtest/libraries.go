package backendtest

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/testpackage"
)

// newPackage is a name that no other test has. The layers that are made with it go when the
// test ends: a cache outlives a suite.
func (s *suite) newPackage(t *testing.T) string {
	t.Helper()
	name := "tiny" + strings.ToLower(rand.Text()[:10])
	t.Cleanup(func() {
		kept := s.layers(t)
		layers, err := kept.List(testContext(t))
		if err != nil {
			t.Error(err)
		}
		for _, l := range layers {
			if slices.ContainsFunc(l.Libraries, func(lib string) bool { return strings.Contains(lib, name) }) {
				settles(t, func() error { return kept.Remove(testContext(t), l.Key) })
			}
		}
	})
	return name
}

// wheels is a directory with a package, whose module tiny has the given answer, and whose
// command tiny prints it.
func (s *suite) wheels(t *testing.T, answer string) (dir, name string) {
	t.Helper()
	dir, name = t.TempDir(), s.newPackage(t)
	testpackage.Wheel(t, dir, name, "1.0", map[string]string{
		"tiny/__init__.py": "answer = " + answer + "\ndef main(): print(answer)\n",
	}, "tiny=tiny:main")
	return dir, name
}

// sdist is a directory with a package that is built by code.
func (s *suite) sdist(t *testing.T, code string) (dir, name string) {
	t.Helper()
	dir, name = t.TempDir(), s.newPackage(t)
	testpackage.SDist(t, dir, name, "1.0", code)
	return dir, name
}

// libraries are options of a sandbox that is opened with libraries out of a directory.
func libraries(dir string, names ...string) llmsandbox.Options {
	return llmsandbox.Options{Libraries: names, Install: llmsandbox.InstallOptions{Local: dir}}
}

// keepsLibraries skips a case that needs libraries where the backend declares that it
// keeps none, and asks for pip.
func (s *suite) keepsLibraries(t *testing.T) {
	t.Helper()
	s.has(t, Libraries)
	require(t, hasProgram(t, s.shared(t), "pip3"), "the sandbox has no pip3: install it in the image, or on this machine for a backend without images")
}

const printAnswer = "import tiny; print(tiny.answer)"

func (s *suite) acceptance28LibrariesOfANewSandbox(t *testing.T) {
	s.keepsLibraries(t)
	dir, name := s.wheels(t, "'28' + 'x' * 3")
	o := libraries(dir, name)
	reports := make(chan backend.Progress, 1000)
	o.Progress = func(p backend.Progress) {
		if p.Stage == "install" {
			reports <- p
		}
	}
	sb := s.open(t, o)
	close(reports)
	wantInstallReports(t, reports, name)
	wantStdout(t, run(t, sb, printAnswer, nil), "28xxx\n")
	// The user's own variables go on meaning what they mean.
	if err := sb.WriteFile(testContext(t), "own/other.py", []byte("x = 1")); err != nil {
		t.Fatal(err)
	}
	wantStdout(t, run(t, sb, "import other, tiny; print(other.x, tiny.answer)",
		&llmsandbox.RunOptions{Env: map[string]string{"PYTHONPATH": here(sb, "/sandbox/own")}}), "1 28xxx\n")
	for name, run := range map[string]func() (*llmsandbox.Result, error){
		"exec":  func() (*llmsandbox.Result, error) { return sb.Exec(testContext(t), []string{"tiny"}, nil) },
		"shell": func() (*llmsandbox.Result, error) { return sb.Shell(testContext(t), "tiny", nil) },
	} {
		res, err := run()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		wantStdout(t, res, "28xxx\n")
	}
	t.Run("commands", func(t *testing.T) {
		wantStdout(t, run(t, sb, "tiny", &llmsandbox.RunOptions{Language: "bash"}), "28xxx\n")
		k, err := sb.Kernel(testContext(t), "python", &llmsandbox.KernelOptions{Plain: true})
		if err != nil {
			t.Fatal(err)
		}
		defer k.Close()
		cell, err := k.Run(testContext(t), "import subprocess\nprint(subprocess.getoutput('tiny'))", nil)
		if err != nil || cell.Stdout != "28xxx\n" {
			t.Errorf("%+v, %v, want no error, Stdout = %q", cell, err, "28xxx\n")
		}
	})
	t.Run("read-only", func(t *testing.T) {
		res := run(t, sb, "import os, tiny\ntry:\n    open(os.path.dirname(tiny.__file__) + '/evil.py', 'w')\nexcept OSError as e:\n    print(e.errno in (13, 30))", nil) // EACCES, EROFS
		wantStdout(t, res, "True\n")
	})
	t.Run("attached", func(t *testing.T) {
		a, err := llmsandbox.Attach(testContext(t), sb.ID(), &llmsandbox.AttachOptions{Backend: s.Backend})
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		wantStdout(t, run(t, a, printAnswer, nil), "28xxx\n")
	})
	t.Run("again", func(t *testing.T) {
		o := libraries(dir, name)
		var installed atomic.Int32
		o.Progress = countInstalls(&installed)
		o.Install.Offline = true
		wantStdout(t, run(t, s.open(t, o), printAnswer, nil), "28xxx\n")
		if n := installed.Load(); n != 0 {
			t.Errorf("%d installations of what was cached, want 0", n)
		}
	})
}

// librariesByPip: what code installs itself is found by its later runs and by the cell that
// installed it, and without a network pip ends soon and says why.
func (s *suite) librariesByPip(t *testing.T) {
	s.keepsLibraries(t)
	dir, name := s.wheels(t, "'by pip'")
	install := []string{"pip3", "install", "--no-index", "--find-links", "wheels", name}
	opened := func(t *testing.T) *llmsandbox.Sandbox {
		sb := s.open(t, llmsandbox.Options{})
		if _, err := sb.CopyIn(testContext(t), dir, "wheels"); err != nil {
			t.Fatal(err)
		}
		return sb
	}
	t.Run("run", func(t *testing.T) {
		sb := opened(t)
		if res := run(t, sb, strings.Join(install, " "), &llmsandbox.RunOptions{Language: "bash"}); res.ExitCode != 0 {
			t.Fatalf("%+v, want ExitCode = 0", res)
		}
		wantStdout(t, run(t, sb, printAnswer, nil), "by pip\n")
		wantStdout(t, run(t, sb, "tiny", &llmsandbox.RunOptions{Language: "bash"}), "by pip\n")
	})
	for _, plain := range []bool{true, false} {
		t.Run(fmt.Sprintf("kernel, plain %v", plain), func(t *testing.T) {
			k := openKernel(t, opened(t), "python", &llmsandbox.KernelOptions{Plain: plain})
			c := cell(t, k, "!"+strings.Join(install, " ")+" >&2\n"+printAnswer, nil)
			if c.Stdout != "by pip\n" {
				t.Errorf("%+v, want Stdout = %q", c, "by pip\n")
			}
		})
	}
	t.Run("no network", func(t *testing.T) {
		res := run(t, s.shared(t), "pip3 install "+name+" || echo failed", &llmsandbox.RunOptions{Language: "bash"})
		if tries := strings.Count(res.Stderr, "Retrying"); tries > 1 || !strings.HasSuffix(res.Stdout, "failed\n") {
			t.Errorf("%d retries, %+v, want at most 1, Stdout ending in %q", tries, res, "failed\n")
		}
	})
}

// libraryFonts: what matplotlib would look for before the first plot was looked for when it
// was installed.
func (s *suite) libraryFonts(t *testing.T) {
	s.keepsLibraries(t)
	dir, name := t.TempDir(), s.newPackage(t)
	testpackage.Wheel(t, dir, name, "1.0", map[string]string{
		"matplotlib/__init__.py": "import os\nrcParams = {'backend': 'agg'}\ndef get_cachedir():\n" +
			"    path = os.environ.get('MPLCONFIGDIR') or os.path.expanduser('~/.cache/matplotlib')\n    os.makedirs(path, exist_ok=True)\n    return path\n",
		"matplotlib/font_manager.py": "import os\nfrom matplotlib import get_cachedir\npath = os.path.join(get_cachedir(), 'fontlist-v1.json')\n" +
			"kept = os.path.exists(path)\nif not kept:\n    open(path, 'w').write('fonts')\n",
	})
	const code = "import matplotlib.font_manager as m; print(m.kept, open(m.path, 'r+').read())"
	wantStdout(t, run(t, s.open(t, libraries(dir, name)), code, nil), "True fonts\n")
}

// wantInstallReports checks that an installation is reported from its beginning, with what the
// package tool says, to its end.
func wantInstallReports(t *testing.T, reports <-chan backend.Progress, library string) {
	t.Helper()
	var list []backend.Progress
	for p := range reports {
		list = append(list, p)
	}
	step := backend.Progress{Stage: "install", Message: library}
	end := step
	end.Done = true
	if n := len(list); n < 3 || list[0] != step || list[n-1] != end {
		t.Fatalf("an installation is reported as %+v, want %+v, lines of the tool, %+v", list, step, end)
	}
	for _, p := range list[1 : len(list)-1] {
		if p.Output == "" || p.Done || p.Message != library {
			t.Errorf("a report between is %+v, want Output not empty, Done false, Message = %q", p, library)
		}
	}
}

// countInstalls counts the installations that have ended.
func countInstalls(n *atomic.Int32) func(backend.Progress) {
	return func(p backend.Progress) {
		if p.Stage == "install" && p.Done {
			n.Add(1)
		}
	}
}

func (s *suite) acceptance28to29LibrariesOfAnOpenSandbox(t *testing.T) {
	s.keepsLibraries(t)
	dir, name := s.wheels(t, "29")
	other := s.newPackage(t)
	testpackage.Wheel(t, dir, other, "2.0", map[string]string{"other.py": "import tiny\nanswer = tiny.answer + 1\n"})
	sb := s.open(t, llmsandbox.Options{Install: llmsandbox.InstallOptions{Local: dir}})
	wantStatus(t, run(t, sb, printAnswer, nil), llmsandbox.StatusError)
	for _, none := range [][]string{nil, {}} { // 29
		if err := sb.Install(testContext(t), none, nil); err != nil {
			t.Errorf("%v: %v", none, err)
		}
		wantExit(t, run(t, sb, "", &llmsandbox.RunOptions{Libraries: none}), 0)
	}
	if err := sb.Install(testContext(t), []string{name}, nil); err != nil {
		t.Fatal(err)
	}
	wantStdout(t, run(t, sb, printAnswer, nil), "29\n")
	for range 2 { // the second time there is nothing to do
		wantStdout(t, run(t, sb, "import other; print(other.answer)", &llmsandbox.RunOptions{Libraries: []string{other}}), "30\n")
	}
	a, err := llmsandbox.Attach(testContext(t), sb.ID(), &llmsandbox.AttachOptions{Backend: s.Backend})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	wantStdout(t, run(t, a, "import tiny, other; print(tiny.answer, other.answer)", nil), "29 30\n")
	res, err := a.Exec(testContext(t), []string{"tiny"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	wantStdout(t, res, "29\n")
}

// librariesAreInstalledOnce has several sandboxes opened at once with a list that no sandbox
// has had before.
func (s *suite) librariesAreInstalledOnce(t *testing.T) {
	s.keepsLibraries(t)
	dir, name := s.wheels(t, "'once'")
	var installed atomic.Int32
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			o := s.options(libraries(dir, name))
			o.BestEffort, o.Progress = true, countInstalls(&installed)
			ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
			defer cancel()
			sb, err := llmsandbox.Open(ctx, &o)
			if err != nil {
				t.Errorf("open: %v", err)
				return
			}
			defer sb.Close()
			if res, err := sb.Run(ctx, printAnswer, nil); err != nil || res.Stdout != "once\n" {
				t.Errorf("%+v, %v, want no error, Stdout = \"once\\n\"", res, err)
			}
		})
	}
	wg.Wait()
	if n := installed.Load(); n != 1 {
		t.Errorf("%d installations, want 1", n)
	}
}
