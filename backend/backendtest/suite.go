package backendtest

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
)

// A suite is one run of all cases on one backend.
type suite struct {
	Config
	// common is a sandbox for the cases that leave nothing behind; see shared.
	common *llmsandbox.Sandbox
	stock  stock
}

// required says that what is missing here must not be: LLMSANDBOX_REQUIRE=1.
func required() bool { return os.Getenv("LLMSANDBOX_REQUIRE") == "1" }

// require skips a test that cannot run here and says why, or fails it where
// everything ought to be there.
func require(t testing.TB, ok bool, why string) {
	t.Helper()
	switch {
	case ok:
	case required():
		t.Fatalf("cannot run here: %s", why)
	default:
		t.Skip(why)
	}
}

// has skips a test that needs what the backend declares to lack.
func (s *suite) has(t testing.TB, features ...Feature) {
	t.Helper()
	for _, f := range features {
		if why, lacks := s.Lacks[f]; lacks {
			t.Skipf("declared to lack %s: %s", f, why)
		}
	}
}

// openTimeout bounds the opening of a sandbox. The first one of a language may prepare
// its caches, which has ten minutes.
const openTimeout = 12 * time.Minute

func testContext(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// options are those of a sandbox on the backend under test.
func (s *suite) options(o llmsandbox.Options) llmsandbox.Options {
	if o.Backend == nil {
		o.Backend = s.Backend
	}
	if s.Image != nil && o.Image == "" {
		language := o.Language
		if language == "" {
			language = "python"
		}
		o.Image = s.Image(language)
	}
	if s.Options != nil {
		s.Options(&o)
	}
	return o
}

// open opens a sandbox that is closed with the test.
func (s *suite) open(t testing.TB, o llmsandbox.Options) *llmsandbox.Sandbox {
	t.Helper()
	if !plain(o) {
		return s.openNow(t, o)
	}
	sb, err := s.stock.take(s)
	closeWith(t, sb, err)
	return sb
}

// openNow is open for a test that looks at how a sandbox is opened: none was before.
func (s *suite) openNow(t testing.TB, o llmsandbox.Options) *llmsandbox.Sandbox {
	t.Helper()
	if o.Language != "" {
		s.has(t, Feature(o.Language))
	}
	sb, err := s.begin(o).wait()
	closeWith(t, sb, err)
	return sb
}

// closeWith closes a sandbox with the test, which fails when it was not opened.
func closeWith(t testing.TB, sb *llmsandbox.Sandbox, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() {
		if err := sb.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
}

// attach returns another handle on a sandbox, which is closed with the test.
func (s *suite) attach(t *testing.T, sb *llmsandbox.Sandbox) *llmsandbox.Sandbox {
	t.Helper()
	other, err := llmsandbox.Attach(testContext(t), sb.ID(), &llmsandbox.AttachOptions{Backend: s.Backend})
	if err != nil {
		t.Fatalf("attach: %v", err)
	}
	t.Cleanup(func() { _ = other.Close() })
	return other
}

// openWith opens a sandbox that has programs.
func (s *suite) openWith(t testing.TB, o llmsandbox.Options, programs ...string) *llmsandbox.Sandbox {
	t.Helper()
	sb := s.open(t, o)
	requirePrograms(t, sb, programs)
	return sb
}

func requirePrograms(t testing.TB, sb *llmsandbox.Sandbox, programs []string) {
	t.Helper()
	for _, p := range programs {
		require(t, hasProgram(t, sb, p), "the sandbox has no "+p+": install it in the image, or on this machine for a backend without images")
	}
}

func hasProgram(t testing.TB, sb *llmsandbox.Sandbox, name string) bool {
	t.Helper()
	res, err := sb.Shell(testContext(t), "command -v "+name, nil)
	if err != nil {
		t.Fatalf("look for %s: %v", name, err)
	}
	return res.OK()
}

// onHost asks for programs of the machine the tests run on.
func onHost(t testing.TB, programs ...string) {
	t.Helper()
	for _, p := range programs {
		_, err := exec.LookPath(p)
		require(t, err == nil, p+" is not installed on this machine")
	}
}

// shared is a sandbox that has only the defaults. Opening one may take long, so the cases
// that leave nothing behind share it. No case inherits what a failed case made of it.
func (s *suite) shared(t *testing.T) *llmsandbox.Sandbox {
	t.Helper()
	if s.common != nil {
		select {
		case <-s.common.Done():
			s.closeShared(t)
		default:
		}
	}
	if s.common == nil {
		sb, err := s.stock.take(s)
		if err != nil {
			t.Fatalf("open: %v", err)
		}
		s.common = sb
	}
	t.Cleanup(func() {
		if t.Failed() {
			s.closeShared(t)
		}
	})
	return s.common
}

// closeIdle closes all that no case uses just now.
func (s *suite) closeIdle(t testing.TB) {
	t.Helper()
	s.closeShared(t)
	s.closeStock(t)
}

func (s *suite) closeShared(t testing.TB) {
	t.Helper()
	if s.common == nil {
		return
	}
	if err := s.common.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	s.common = nil
}

// settleTime is longer than anything takes on a machine that is busy: a kubelet that tests beside it kept waiting has taken
// 20 s to remove the directory of a pod.
const settleTime = 2 * time.Minute

// settles waits until check finds nothing wrong. It asks again and again, since what an
// engine or a kernel removes on its own time sends no event.
func settles(t testing.TB, check func() error) {
	t.Helper()
	err := check()
	for deadline := time.Now().Add(settleTime); err != nil && time.Now().Before(deadline); err = check() {
		time.Sleep(20 * time.Millisecond)
	}
	if err != nil {
		t.Error(err)
	}
}
