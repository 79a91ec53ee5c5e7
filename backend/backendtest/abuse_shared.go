package backendtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox"
)

// abuse39to41NothingIsShared writes to every place that another sandbox, a later
// one or a tool of the host might read.
func (s *suite) abuse39to41NothingIsShared(t *testing.T) {
	const marker = "abuse-planted-7c2e"
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	plant := `
import os
places = ["/tmp", "/var/tmp", "/dev/shm", "/sandbox", "/run", "/", "/etc", "/usr/lib/python3/dist-packages", "/opt", "/srv", "/home", "/root",
          os.path.expanduser("~"), os.path.expanduser("~/.config"), os.path.expanduser("~/.ssh"), "/sandbox/.git/hooks", ` + fmt.Sprintf("%q", home) + `]
for variable in ("GOCACHE", "GOMODCACHE", "PIP_CACHE_DIR", "R_LIBS_USER", "GEM_HOME"):
    if variable in os.environ: places.append(os.environ[variable])
for root, dirs, _ in os.walk("/tmp"):
    places += [os.path.join(root, d) for d in dirs]
for place in places:
    for name in ("` + marker + `", ".bashrc", "post-checkout", "sitecustomize.py", ".bash_history"):
        try:
            os.makedirs(place, exist_ok=True)
            open(os.path.join(place, name), "a").write("` + marker + `")
        except OSError: pass
`
	const search = attempts + `
canary = "abuse-" + "planted-7c2e"
for root, dirs, names in os.walk("/"):
    dirs[:] = [d for d in dirs if os.path.join(root, d) not in ("/proc", "/sys")]
    for name in names:
        path = os.path.join(root, name)
        if canary in name: print("REACHED", path)
        if root.startswith(("/usr", "/opt/toolchains")) or not os.path.isfile(path) or os.path.getsize(path) > 1 << 20: continue
        try:
            if canary.encode() in open(path, "rb").read(): print("REACHED", path)
        except OSError: pass
if canary in str(os.environ): print("REACHED environ")
print("end")`
	python := &llmsandbox.RunOptions{Language: "python"}
	o := s.withCaches(t)
	beside := s.open(t, o)
	bad := s.open(t, o)
	// 41: what a run sets for itself, its environment and its variables, ends with it.
	wantExit(t, run(t, bad, "import os\nos.environ['PLANTED'] = '"+marker+"'\nplanted = 1", python), 0)
	wantStdout(t, run(t, bad, "import os\nprint('PLANTED' in os.environ, 'planted' in globals())", python), "False False\n")
	wantExit(t, run(t, bad, plant, python), 0)
	wantNothingReached(t, run(t, beside, search, python)) // 39
	if err := bad.Close(); err != nil {
		t.Fatal(err)
	}
	later := s.open(t, o)
	wantNothingReached(t, run(t, later, search, python))                       // 41
	for _, dir := range []string{os.TempDir(), home, "/var/tmp", "/dev/shm"} { // 39, 40
		if _, err := os.Lstat(filepath.Join(dir, marker)); err == nil {
			t.Errorf("%s of the host was written to, want an error", dir)
		}
	}
	for _, name := range []string{".bashrc", ".bash_history"} {
		if b, err := os.ReadFile(filepath.Join(home, name)); err == nil && strings.Contains(string(b), marker) {
			t.Errorf("%s of the host was written to, want an error or b without %q", name, marker)
		}
	}
}

// withCaches are the options of a sandbox that has Python, and the prepared caches of Go
// where both are in one place.
func (s *suite) withCaches(t *testing.T) llmsandbox.Options {
	t.Helper()
	if _, lacks := s.Lacks["go"]; lacks {
		return llmsandbox.Options{}
	}
	o := llmsandbox.Options{Language: "go"}
	sb := s.open(t, o)
	if hasProgram(t, sb, "go") && hasProgram(t, sb, "python3") {
		return o
	}
	require(t, s.Image != nil, "go or python3 is not installed on this machine")
	return llmsandbox.Options{}
}
