package e2e

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend/local"
)

// serve serves on loopback, at an address that proxies are not kept from as they are from 127.0.0.1.
func serve(t *testing.T, h http.Handler) (url string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: h}}
	server.Start()
	t.Cleanup(server.Close)
	return server.URL
}

// serveRepository serves a directory, and counts the requests.
func serveRepository(t *testing.T, dir string) (url string, requests *atomic.Int64) {
	t.Helper()
	requests = new(atomic.Int64)
	files := http.FileServer(http.Dir(dir))
	return serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		files.ServeHTTP(w, r)
	})), requests
}

// makeWith runs a tool of this machine, which the repository is made with.
func makeWith(t *testing.T, dir string, argv ...string) {
	t.Helper()
	_, err := exec.LookPath(argv[0])
	require(t, err == nil, argv[0]+" is not installed on this machine")
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%q: %v\n%s", argv, err, out)
	}
}

func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// forget removes what a test installed from the cache, whatever becomes of it.
func forget(t *testing.T, library string) {
	t.Helper()
	t.Cleanup(func() {
		kept, err := local.New(nil).Layers()
		if err != nil {
			t.Fatal(err)
		}
		layers, err := kept.List(testContext(t))
		if err != nil {
			t.Error(err)
		}
		for _, l := range layers {
			if strings.Contains(strings.Join(l.Libraries, " "), library) {
				if err := kept.Remove(testContext(t), l.Key); err != nil {
					t.Error(err)
				}
			}
		}
	})
}

// uses opens a sandbox with libraries out of a repository that has just been made, once with
// it and once, from the cache, without a network.
func uses(t *testing.T, o llmsandbox.Options, code, want string, requests *atomic.Int64) {
	t.Helper()
	if err := func() error {
		o := o
		o.Libraries = []string{"nobodyhasthis"}
		sb, err := llmsandbox.Open(testContext(t), &o)
		if err == nil {
			sb.Close()
		}
		return err
	}(); err == nil || !strings.Contains(err.Error(), "nobodyhasthis") {
		t.Errorf("a package that is not there: %v, want an error containing \"nobodyhasthis\"", err)
	}
	for _, offline := range []bool{false, true} {
		o.Install.Offline = offline
		before := requests.Load()
		res, err := open(t, o).Run(testContext(t), code, nil)
		if err != nil || res.Status != llmsandbox.StatusOK || res.Stdout != want {
			t.Fatalf("%+v, %v, want %q", res, err, want)
		}
		if asked := requests.Load() > before; asked == offline {
			t.Errorf("offline %v: the repository was asked: %v", offline, asked)
		}
	}
}

// A repository of R: a package with C in it, and one in two versions that needs it.
func TestAcceptance28LibrariesOfCRAN(t *testing.T) {
	src, repo := t.TempDir(), t.TempDir()
	description := func(name, version, more string) string {
		return fmt.Sprintf("Package: %s\nVersion: %s\nTitle: T\nDescription: D.\nAuthor: A\nMaintainer: A <a@a.test>\nLicense: MIT\n%s", name, version, more)
	}
	writeFiles(t, src, map[string]string{
		"sandboxdep/DESCRIPTION": description("sandboxdep", "1.0", ""), "sandboxdep/NAMESPACE": "export(f)\nuseDynLib(sandboxdep)\n",
		"sandboxdep/R/f.R": "f <- function() .C('answer', 1L)[[1]]\n", "sandboxdep/src/answer.c": "void answer(int *x) { *x = 41; }\n",
		"sandboxtiny/DESCRIPTION": description("sandboxtiny", "1.2-3", "Imports: sandboxdep\n"), "sandboxtiny/NAMESPACE": "export(f)\n",
		"sandboxtiny/R/f.R": "f <- function() sandboxdep::f() + 1\n",
	})
	contrib := filepath.Join(repo, "src", "contrib")
	if err := os.MkdirAll(filepath.Join(contrib, "Archive", "sandboxtiny"), 0o755); err != nil {
		t.Fatal(err)
	}
	makeWith(t, contrib, "R", "CMD", "build", filepath.Join(src, "sandboxdep"), filepath.Join(src, "sandboxtiny"))
	if err := os.Rename(filepath.Join(contrib, "sandboxtiny_1.2-3.tar.gz"), filepath.Join(contrib, "Archive", "sandboxtiny", "sandboxtiny_1.2-3.tar.gz")); err != nil {
		t.Fatal(err)
	}
	writeFiles(t, src, map[string]string{"sandboxtiny/DESCRIPTION": description("sandboxtiny", "2.0", "Imports: sandboxdep\n"),
		"sandboxtiny/R/f.R": "f <- function() sandboxdep::f() + 2\n"})
	makeWith(t, contrib, "R", "CMD", "build", filepath.Join(src, "sandboxtiny"))
	makeWith(t, contrib, "Rscript", "-e", `tools::write_PACKAGES(".", type = "source")`)
	url, requests := serveRepository(t, repo)
	profile := filepath.Join(t.TempDir(), "profile")
	writeFiles(t, filepath.Dir(profile), map[string]string{"profile": fmt.Sprintf("options(repos = c(own = %q))\n", url)})
	t.Setenv("R_PROFILE_USER", profile)
	forget(t, "sandboxtiny")
	const code = "cat(sandboxtiny::f(), '\\n')"
	uses(t, llmsandbox.Options{Language: "r", Libraries: []string{"sandboxtiny"}}, code, "43 \n", requests)
	t.Run("an older version", func(t *testing.T) {
		uses(t, llmsandbox.Options{Language: "r", Libraries: []string{"sandboxtiny@1.2-3"}}, code, "42 \n", requests)
	})
}

// index writes what gem asks of a repository, for the gems in the directory.
const index = `
require "rubygems/package"
require "zlib"
specs = Dir["gems/*.gem"].map { |f| Gem::Package.new(f).spec }
list = Marshal.dump(specs.map { |s| [s.name, s.version, s.platform.to_s] })
Zlib::GzipWriter.open("specs.4.8.gz") { |z| z.write(list) }
Zlib::GzipWriter.open("latest_specs.4.8.gz") { |z| z.write(list) }
Zlib::GzipWriter.open("prerelease_specs.4.8.gz") { |z| z.write(Marshal.dump([])) }
Dir.mkdir("quick")
Dir.mkdir("quick/Marshal.4.8")
specs.each { |s| File.binwrite("quick/Marshal.4.8/#{s.full_name}.gemspec.rz", Zlib::Deflate.deflate(Marshal.dump(s))) }
`

// A repository of Ruby: a gem with a command that needs another.
func TestAcceptance28LibrariesOfRubyGems(t *testing.T) {
	src, repo := t.TempDir(), t.TempDir()
	spec := func(name, more string) string {
		return fmt.Sprintf("Gem::Specification.new { |s| s.name = %q; s.version = '1.0.1'; s.summary = 's'; s.authors = ['a']; s.files = Dir['lib/*']\n%s }\n", name, more)
	}
	writeFiles(t, src, map[string]string{
		"dep/dep.gemspec": spec("sandboxdep", ""), "dep/lib/sandboxdep.rb": "module SandboxDep; ANSWER = 42; end\n",
		"tiny/tiny.gemspec":       spec("sandboxtiny", "s.add_dependency 'sandboxdep', '~> 1.0'; s.bindir = 'bin'; s.executables = ['sandboxtiny']; s.files += ['bin/sandboxtiny']"),
		"tiny/lib/sandboxtiny.rb": "require 'sandboxdep'\n", "tiny/bin/sandboxtiny": "#!/usr/bin/env ruby\nrequire 'sandboxtiny'\nputs SandboxDep::ANSWER + 1\n",
	})
	if err := os.Mkdir(filepath.Join(repo, "gems"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, gem := range map[string]string{"dep": "sandboxdep", "tiny": "sandboxtiny"} {
		makeWith(t, filepath.Join(src, name), "gem", "build", name+".gemspec", "--output", filepath.Join(repo, "gems", gem+"-1.0.1.gem"))
	}
	makeWith(t, repo, "ruby", "-e", index)
	url, requests := serveRepository(t, repo)
	config := filepath.Join(t.TempDir(), "gemrc")
	writeFiles(t, filepath.Dir(config), map[string]string{"gemrc": fmt.Sprintf("---\n:sources:\n- %s/\n", url)})
	t.Setenv("GEMRC", config)
	forget(t, "sandboxtiny")
	uses(t, llmsandbox.Options{Language: "ruby", Libraries: []string{"sandboxtiny:~>1.0"}}, "require 'sandboxtiny'; puts SandboxDep::ANSWER, `sandboxtiny`", "42\n43\n", requests)
}
