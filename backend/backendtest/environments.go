package backendtest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/testpackage"
)

// environments locks two packages, and opens sandboxes with these and no others.
func (s *suite) environments(t *testing.T) {
	s.keepsLibraries(t)
	dir, name := s.wheels(t, "'locked'")
	other, more := s.newPackage(t), s.newPackage(t)
	testpackage.Wheel(t, dir, other, "2.0", map[string]string{"other.py": "import tiny\nanswer = tiny.answer + ' too'\n"})
	testpackage.Wheel(t, dir, more, "3.0", map[string]string{"more.py": "import other\nanswer = other.answer + ' and more'\n"})
	o := s.options(libraries(dir))
	text, err := llmsandbox.LockEnvironment(testContext(t), []string{other, name + ">=1"}, &o)
	if err != nil {
		t.Fatal(err)
	}
	lock := filepath.Join(t.TempDir(), "two.toml")
	if err := os.WriteFile(lock, text, 0o644); err != nil {
		t.Fatal(err)
	}
	o.Environment = lock
	wantInstalled := func(want bool) {
		t.Helper()
		list, err := llmsandbox.Environments(testContext(t), &o)
		if err != nil || len(list) != 1 || list[0].Name != "two" || list[0].Installed != want || len(list[0].Packages) != 2 {
			t.Errorf("Environments() = %+v, %v, want two with 2 packages, installed: %v", list, err, want)
		}
	}
	wantInstalled(false)
	offline := o
	offline.Install = llmsandbox.InstallOptions{Offline: true}
	if sb, err := llmsandbox.Open(testContext(t), &offline); !errors.Is(err, llmsandbox.ErrInstall) || !strings.Contains(err.Error(), "llmsandbox setup") {
		if err == nil {
			sb.Close()
		}
		t.Errorf("%v, want llmsandbox.ErrInstall, an error containing \"llmsandbox setup\"", err)
	}
	sb := s.open(t, o)
	wantInstalled(true)
	wantStdout(t, run(t, sb, "import other, os; print(other.answer, os.environ['SANDBOX_ENVIRONMENT'])", nil), "locked too two\n")
	wantStdout(t, run(t, sb, "tiny; python3 -c 'import tiny; print(tiny.answer)'; pip --version >&2 && echo pip", &llmsandbox.RunOptions{Language: "bash"}), "locked\nlocked\npip\n")
	// The packages of the machine or the image are not there.
	const foreign = "import sys; print([p for p in sys.path if p.endswith('-packages') and not p.startswith(sys.prefix)])"
	wantStdout(t, run(t, sb, foreign, nil), "[]\n")
	a, err := llmsandbox.Attach(testContext(t), sb.ID(), &llmsandbox.AttachOptions{Backend: s.Backend})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if err := a.Install(testContext(t), []string{more}, &o.Install); err != nil {
		t.Fatal(err)
	}
	wantStdout(t, run(t, a, "import more; print(more.answer)", nil), "locked too and more\n")
	// Offline by its lock alone, and with a library that is there already.
	offline.Libraries, offline.Install.Local = []string{more}, dir
	wantStdout(t, run(t, s.open(t, offline), "import more, sys; print(more.answer)", nil), "locked too and more\n")
}
