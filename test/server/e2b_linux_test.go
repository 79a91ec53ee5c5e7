package server

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// An sdkUser is where a test has an SDK of E2B, with the scripts that use it.
type sdkUser struct {
	t      *testing.T
	server *server
	dir    string
	env    []string
}

// newSDK starts a server for an SDK, with these flags.
func (m *machine) newSDK(args ...string) *sdkUser {
	m.t.Helper()
	s := m.start(append([]string{"--e2b", "--ttl", "20m", "--max-ttl", "20m"}, args...)...)
	key := s.makeKey("--e2b", "sdk")
	dir := m.t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/e2b")); err != nil {
		m.t.Fatal(err)
	}
	return &sdkUser{m.t, s, dir, append(os.Environ(), "E2B_API_URL="+s.address, "E2B_SANDBOX_URL="+s.address, "E2B_API_KEY="+key)}
}

// python installs packages, and runs a script of theirs.
func (s *sdkUser) python(script string, packages ...string) {
	s.t.Helper()
	s.run("python3", "-m", "venv", "venv")
	s.run("venv/bin/pip", append([]string{"install", "--quiet", "--disable-pip-version-check"}, packages...)...)
	s.run("venv/bin/python", script)
}

// run runs a program to its end: a relative one with a slash is in the SDK's directory.
func (s *sdkUser) run(program string, args ...string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 10*time.Minute)
	defer cancel()
	if filepath.Base(program) != program {
		program = filepath.Join(s.dir, program)
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env = s.dir, s.env
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("%s: %v: %s", filepath.Base(program), err, out)
	}
}

// TestE2BPython has the SDKs of E2B for Python, as their registry has them, go through their main flows: the newest, the first whose interpreter knows
// E2B_SANDBOX_URL, and an old one.
func TestE2BPython(t *testing.T) {
	const newest = "2.63.0"
	for _, v := range []struct{ sdk, interpreter string }{{newest, "2.11.5"}, {"2.45.1", "2.9.1"}, {"2.8.1", "2.4.1"}} {
		t.Run(v.sdk, func(t *testing.T) {
			t.Parallel()
			var args []string
			if v.sdk == newest {
				args = []string{"--ports-domain", "ports.example.org"} // older ones would go there for all
			}
			s := newMachine(t).newSDK(args...)
			s.python("sdk.py", "e2b=="+v.sdk, "e2b-code-interpreter=="+v.interpreter)
			if v.sdk == newest {
				s.run("venv/bin/python", "ports.py")
				s.streams("venv/bin/python", "large.py")
			}
		})
	}
}

// streams fails where the server holds the files in memory that a script writes and reads.
func (s *sdkUser) streams(program, script string) {
	s.t.Helper()
	const size = 64 << 20
	s.server.peakMemory() // of what came before
	before := s.server.peakMemory()
	s.run(program, script, strconv.Itoa(size))
	if grown := s.server.peakMemory() - before; grown > size/2 {
		s.t.Errorf("the server took %d MiB more for files of %d MiB, want that they stream through", grown>>20, size>>20)
	}
}

// peakMemory is the most memory that the server has had since the last call, in bytes.
func (s *server) peakMemory() int {
	s.t.Helper()
	proc := fmt.Sprintf("/proc/%d/", s.cmd.Process.Pid)
	text, err := os.ReadFile(proc + "status")
	if err == nil {
		err = os.WriteFile(proc+"clear_refs", []byte("5"), 0) // begins anew, from what it has now
	}
	if err != nil {
		s.t.Fatal(err)
	}
	_, peak, _ := strings.Cut(string(text), "VmHWM:")
	peak, _, _ = strings.Cut(peak, "kB")
	kib, err := strconv.Atoi(strings.TrimSpace(peak))
	if err != nil {
		s.t.Fatal(err)
	}
	return kib << 10
}

// TestE2BSnapshots has the SDK for Python take snapshots, and begin with them.
func TestE2BSnapshots(t *testing.T) {
	newMachine(t).newSDK("--writable-root", "--max-images", "40").python("snapshots.py", "e2b==2.63.0")
}

// TestE2BAdapters has frameworks use sandboxes by their own adapters for E2B.
func TestE2BAdapters(t *testing.T) {
	t.Run("LangChain", func(t *testing.T) {
		t.Parallel()
		newMachine(t).newSDK().python("with_langchain.py", "langchain-e2b==0.0.6", "deepagents==0.6.12", "e2b==2.63.0")
	})
	t.Run("OpenAI Agents", func(t *testing.T) {
		t.Parallel()
		newMachine(t).newSDK("--writable-root", "--max-images", "40").python("with_openai.py", "openai-agents[e2b]==0.24.0")
	})
}

// TestE2BCharts has an SDK read what an environment's packages draw.
func TestE2BCharts(t *testing.T) {
	m := newMachine(t)
	m.env = append(m.env, "LLMSANDBOX_CONFIG_DIR="+t.TempDir())
	setup := exec.CommandContext(t.Context(), command, "setup", "plots", "--lib", "ipython", "--lib", "matplotlib", "--lib", "pandas")
	setup.Env = m.env
	if out, err := setup.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	m.newSDK("--environment", "plots").python("charts.py", "e2b==2.63.0", "e2b-code-interpreter==2.11.5")
}

// TestE2BTemplates has the SDK for Python build templates, and begin with them.
func TestE2BTemplates(t *testing.T) {
	for name, args := range map[string][]string{"user": nil, "root": {"--user", "root"}} {
		t.Run(name, func(t *testing.T) {
			newMachine(t).newSDK(append([]string{"--writable-root", "--max-images", "40"}, args...)...).python("templates.py", "e2b==2.63.0")
		})
	}
}

// TestE2BTypeScript has those for TypeScript do so, with the Node.js that was installed with them: a distribution's may be too old.
func TestE2BTypeScript(t *testing.T) {
	s := newMachine(t).newSDK()
	s.run("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	node := "node_modules/node-linux-" + map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH] + "/bin/node"
	s.run(node, "sdk.mjs")
	templates := newMachine(t).newSDK("--writable-root", "--max-images", "40")
	templates.dir = s.dir
	templates.run(node, "templates.mjs")
}
