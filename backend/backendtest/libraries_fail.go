package backendtest

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/language/all"
)

// openFails opens a sandbox with libraries that cannot be installed.
func (s *suite) openFails(t *testing.T, o llmsandbox.Options) *llmsandbox.InstallError {
	t.Helper()
	o = s.options(o)
	o.BestEffort = true
	sb, err := llmsandbox.Open(testContext(t), &o)
	if err == nil {
		sb.Close()
		t.Fatal("it opened: got no error, want an error")
	}
	var failed *llmsandbox.InstallError
	if !errors.As(err, &failed) || !errors.Is(err, llmsandbox.ErrInstall) {
		t.Fatalf("%v: no InstallError, want an error of type %T, llmsandbox.ErrInstall", err, failed)
	}
	return failed
}

func (s *suite) acceptance31InstallationFails(t *testing.T) {
	s.keepsLibraries(t)
	t.Run("no such package", func(t *testing.T) {
		dir, _ := s.wheels(t, "31")
		failed := s.openFails(t, libraries(dir, "no-such-package"))
		if failed.Status != llmsandbox.StatusError || !strings.Contains(failed.Output, "no-such-package") {
			t.Errorf("status %s, output %q, want Status = StatusError, Output containing \"no-such-package\"", failed.Status, failed.Output)
		}
		if text := failed.Error(); !strings.Contains(text, "no-such-package") || !strings.Contains(text, failed.Output) {
			t.Errorf("the error says %q, want text containing \"no-such-package\", text containing %q", text, failed.Output)
		}
	})
	t.Run("does not build, is tried again, and harms nothing", func(t *testing.T) {
		dir, name := s.sdist(t, "def build(): raise SystemExit('it does not build: 31')\n")
		sb := s.open(t, llmsandbox.Options{Install: llmsandbox.InstallOptions{Local: dir}})
		for range 2 {
			res, err := sb.Run(testContext(t), printAnswer, &llmsandbox.RunOptions{Libraries: []string{name}})
			var failed *llmsandbox.InstallError
			if !errors.As(err, &failed) || !strings.Contains(failed.Output, "it does not build: 31") {
				t.Fatalf("%v, want an error of type %T, Output containing \"it does not build: 31\"", err, failed)
			}
			wantStatus(t, res, llmsandbox.StatusSetupFailed)
		}
		wantStatus(t, run(t, sb, printAnswer, nil), llmsandbox.StatusError)
	})
	t.Run("offline", func(t *testing.T) {
		failed := s.openFails(t, llmsandbox.Options{Libraries: []string{"never-installed-by-anybody"}, Install: llmsandbox.InstallOptions{Offline: true}})
		if !strings.Contains(failed.Error(), "cache") {
			t.Errorf("the error says %q, want it to contain \"cache\"", failed.Error())
		}
	})
}

// forever is a package whose build does not end.
const forever = "import time\ndef build(): time.sleep(600)\n"

func (s *suite) acceptance27InstallationTimesOut(t *testing.T) {
	s.keepsLibraries(t)
	dir, name := s.sdist(t, forever)
	t.Run("of a run", func(t *testing.T) {
		sb := s.open(t, llmsandbox.Options{Install: llmsandbox.InstallOptions{Local: dir}})
		start := time.Now()
		res := run(t, sb, printAnswer, &llmsandbox.RunOptions{Libraries: []string{name}, Timeout: 4 * time.Second})
		wantStatus(t, res, llmsandbox.StatusTimeout)
		if took := time.Since(start); took > 2*time.Minute || res.Duration < 3*time.Second || res.ExitCode != -1 {
			t.Errorf("took %v, duration %v, exit code %v, want took <= 2m, Duration >= 3s, ExitCode = -1", took, res.Duration, res.ExitCode)
		}
		answers(t, sb)
	})
	t.Run("of its own", func(t *testing.T) {
		o := libraries(dir, name)
		o.Install.Timeout = 4 * time.Second
		if failed := s.openFails(t, o); failed.Status != llmsandbox.StatusTimeout {
			t.Errorf("status %s: %v, want StatusTimeout", failed.Status, failed)
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		o := s.options(libraries(dir, name))
		o.BestEffort = true
		ctx, cancel := context.WithCancel(testContext(t))
		defer cancel()
		o.Progress = func(p backend.Progress) {
			if p.Stage == "install" {
				cancel()
			}
		}
		if sb, err := llmsandbox.Open(ctx, &o); !errors.Is(err, context.Canceled) {
			if err == nil {
				sb.Close()
			}
			t.Errorf("%v, want context.Canceled", err)
		}
	})
}

// A watched backend counts the sandboxes that are made.
type watched struct {
	backend.Backend
	created atomic.Int32
}

func (w *watched) Create(ctx context.Context, spec backend.Spec) (backend.Machine, error) {
	w.created.Add(1)
	return w.Backend.Create(ctx, spec)
}

// acceptance33Injection: what is no name of a library fails before anything runs, in
// every language and everywhere that a library can be named.
func (s *suite) acceptance33Injection(t *testing.T) {
	s.keepsLibraries(t)
	sb := s.shared(t)
	w := &watched{Backend: s.Backend}
	for _, l := range all.All() {
		lang := l.Name
		if l.Libraries == nil {
			continue
		}
		for _, name := range []string{
			"foo; rm -rf /", "foo && x", "foo$(x)", "foo`x`", "--upgrade-strategy eager", "--index-url=x", "-r x", "foo bar", `"foo"`, "'foo'",
			"foo\nbar", "foo\x00", "", " ", "../foo", "/etc/passwd", "foo|x", "foo>x y", "$HOME",
		} {
			o := s.options(llmsandbox.Options{Backend: w, Language: lang, Libraries: []string{name}})
			opened, err := llmsandbox.Open(testContext(t), &o)
			if err == nil {
				opened.Close()
			}
			_, runErr := sb.Run(testContext(t), "", &llmsandbox.RunOptions{Language: lang, Libraries: []string{name}})
			for where, err := range map[string]error{"open": err, "run": runErr} {
				if !errors.Is(err, llmsandbox.ErrInvalid) || !errors.Is(err, language.ErrInvalidLibrary) {
					t.Errorf("%s in %s, %s: %v, want llmsandbox.ErrInvalid, language.ErrInvalidLibrary", name, lang, where, err)
				}
			}
		}
	}
	if n := w.created.Load(); n != 0 {
		t.Errorf("%d sandboxes were made, want 0", n)
	}
}
