package warm

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

var (
	keyA = strings.Repeat("a", keySize)
	keyB = strings.Repeat("b", keySize)
)

// fakes opens fake sandboxes, and tells of each by its id.
type fakes struct {
	key    string
	n      *atomic.Int32
	opened chan *fake
	closed chan string
}

type fake struct {
	id     string
	done   chan struct{}
	closed chan<- string
}

func (f *fake) ID() string            { return f.id }
func (f *fake) Done() <-chan struct{} { return f.done }
func (f *fake) Close() error          { f.closed <- f.id; return nil }

func (f *fakes) open(context.Context) (Sandbox, error) {
	s := &fake{"sb-" + f.key[:1] + string('0'+rune(f.n.Add(1))), make(chan struct{}), f.closed}
	f.opened <- s
	return s, nil
}

// keepOne runs Keep, and returns once its first sandbox waits.
func keepOne(t *testing.T, key string, number int, idle time.Duration) (f *fakes, s *fake, ended <-chan error, stop context.CancelFunc) {
	t.Helper()
	f = &fakes{key, new(atomic.Int32), make(chan *fake, 100), make(chan string, 100)}
	f.n.Store(int32(countNames(t)))
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	var keeping sync.WaitGroup
	keeping.Go(func() { done <- Keep(ctx, key, number, idle, f.open) })
	t.Cleanup(func() { stop(); keeping.Wait() })
	s = <-f.opened
	awaitWaiting(t, key, s.id)
	return f, s, done, stop
}

func countNames(t *testing.T) int {
	_, names, err := waiting()
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}

// awaitWaiting watches the directory until a sandbox waits that has been opened.
func awaitWaiting(t *testing.T, key, id string) {
	t.Helper()
	d, err := dir()
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if _, err := unix.InotifyAddWatch(fd, d, unix.IN_MOVED_TO); err != nil {
		t.Fatal(err)
	}
	for !Waits(key, id) {
		if _, err := unix.Read(fd, make([]byte, 4096)); err != nil && !errors.Is(err, unix.EINTR) {
			t.Fatal(err)
		}
	}
}

func stateDir(t *testing.T) string {
	t.Helper()
	state := t.TempDir()
	t.Setenv("LLMSANDBOX_STATE_DIR", state)
	return filepath.Join(state, "warm")
}

func claim(t *testing.T, key string) *Claimed {
	t.Helper()
	c, err := Claim(key)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestClaim(t *testing.T) {
	d := stateDir(t)
	if c := claim(t, keyA); c != nil {
		t.Fatalf("claimed %s, and nothing waits", c.ID)
	}
	if _, err := os.Lstat(d); err == nil {
		t.Error("looking made the directory")
	}
	f, first, ended, stop := keepOne(t, keyA, 1, time.Hour)
	if c := claim(t, keyB); c != nil {
		t.Fatalf("claimed %s with another key", c.ID)
	}
	c := claim(t, keyA)
	if c == nil || c.ID != first.id {
		t.Fatalf("claimed %v, want %s", c, first.id)
	}
	if Waits(keyA, first.id) {
		t.Error("it waits, and is claimed")
	}
	if again := claim(t, keyA); again != nil {
		t.Fatalf("claimed %s twice", again.ID)
	}
	c.Release()
	second := <-f.opened // the next one, with no word to anyone
	if id := <-f.closed; id != first.id || second.id == first.id {
		t.Errorf("closed %s and opened %s, want %s closed and another one opened", id, second.id, first.id)
	}
	awaitWaiting(t, keyA, second.id)
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if id := <-f.closed; id != second.id {
		t.Errorf("closed %s, want %s", id, second.id)
	}
	if left, _ := filepath.Glob(filepath.Join(d, "*.*")); len(left) > 0 {
		t.Errorf("left %q", left)
	}
}

// TestClaimOnce has many callers at once look for one sandbox.
func TestClaimOnce(t *testing.T) {
	stateDir(t)
	f, _, _, _ := keepOne(t, keyA, 1, time.Hour)
	for range 20 {
		claimed := make([]*Claimed, 8)
		var all sync.WaitGroup
		for i := range claimed {
			all.Go(func() {
				var err error
				if claimed[i], err = Claim(keyA); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		got := slices.DeleteFunc(claimed, func(c *Claimed) bool { return c == nil })
		if len(got) != 1 {
			t.Fatalf("%d callers have got it, want 1", len(got))
		}
		got[0].Release()
		if id := <-f.closed; id != got[0].ID {
			t.Fatalf("closed %s, want %s", id, got[0].ID)
		}
		next := <-f.opened
		awaitWaiting(t, keyA, next.id)
	}
}

// TestClaimerDies has a process claim a sandbox, and killed.
func TestClaimerDies(t *testing.T) {
	if os.Getenv("WARM_TEST_CLAIM") != "" {
		c, err := Claim(keyA)
		if c == nil || err != nil {
			os.Exit(1)
		}
		_, _ = os.Stdout.WriteString("claimed\n")
		select {}
	}
	stateDir(t)
	f, first, _, _ := keepOne(t, keyA, 1, time.Hour)
	cmd := exec.Command(os.Args[0], "-test.run=^TestClaimerDies$")
	cmd.Env = append(os.Environ(), "WARM_TEST_CLAIM=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if n, _ := out.Read(make([]byte, 10)); n == 0 {
		t.Fatal("it has claimed nothing")
	}
	if Waits(keyA, first.id) {
		t.Error("it waits, and is claimed")
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if id := <-f.closed; id != first.id {
		t.Errorf("closed %s, want %s", id, first.id)
	}
}

func TestKeepEnds(t *testing.T) {
	t.Run("when no run comes", func(t *testing.T) {
		stateDir(t)
		f := &fakes{keyA, new(atomic.Int32), make(chan *fake, 1), make(chan string, 1)}
		if err := Keep(t.Context(), keyA, 1, time.Millisecond, f.open); err != nil {
			t.Fatal(err)
		}
		if s := <-f.opened; <-f.closed != s.id || Waits(keyA, s.id) {
			t.Error("it is left")
		}
	})
	t.Run("with its sandbox", func(t *testing.T) {
		stateDir(t)
		_, s, ended, _ := keepOne(t, keyA, 1, time.Hour)
		close(s.done)
		if err := <-ended; err != nil || Waits(keyA, s.id) {
			t.Errorf("%v, and it waits: %t", err, Waits(keyA, s.id))
		}
	})
	t.Run("not while a run has its sandbox", func(t *testing.T) {
		stateDir(t)
		f, s, ended, _ := keepOne(t, keyA, 1, time.Hour)
		c := claim(t, keyA)
		close(s.done)
		c.Release()
		select {
		case <-f.opened:
		case err := <-ended:
			t.Errorf("it has ended: %v", err)
		}
	})
	t.Run("where another one waits", func(t *testing.T) {
		stateDir(t)
		keepOne(t, keyA, 1, time.Hour)
		if err := Keep(t.Context(), keyA, 1, time.Hour, func(context.Context) (Sandbox, error) { return nil, errors.New("opened") }); err != nil {
			t.Error(err)
		}
	})
	t.Run("where it cannot be opened", func(t *testing.T) {
		stateDir(t)
		no := errors.New("no")
		if err := Keep(t.Context(), keyA, 1, time.Hour, func(context.Context) (Sandbox, error) { return nil, no }); !errors.Is(err, no) {
			t.Errorf("%v, want %v", err, no)
		}
		keepOne(t, keyA, 1, time.Hour) // nothing is locked
	})
}

// TestMost opens more than may wait: the one that has waited longest ends.
func TestMost(t *testing.T) {
	d := stateDir(t)
	var first *fake
	var ended <-chan error
	for i := range Most {
		_, s, end, _ := keepOne(t, keyA, Most, time.Hour)
		since := time.Now().Add(time.Duration(i-Most) * time.Second)
		if err := os.Chtimes(filepath.Join(d, keyA+"."+s.id), since, since); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first, ended = s, end
		}
	}
	keepOne(t, keyB, 1, time.Hour)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if n := countNames(t); n != Most || Waits(keyA, first.id) {
		t.Errorf("%d wait, want %d without %s", n, Most, first.id)
	}
}

func TestGC(t *testing.T) {
	d := stateDir(t)
	if removed, err := GC(); err != nil || len(removed) > 0 {
		t.Fatalf("%q, %v", removed, err)
	}
	_, living, _, _ := keepOne(t, keyA, 1, time.Hour)
	dead := filepath.Join(d, keyB+".sb-dead")
	if err := unix.Mkfifo(dead, 0o600); err != nil {
		t.Fatal(err)
	}
	if c := claim(t, keyB); c != nil {
		t.Errorf("claimed %s, whose owner is dead", c.ID)
	}
	if removed, err := GC(); err != nil || !slices.Equal(removed, []string{dead}) {
		t.Errorf("%q, %v; want %s", removed, err, dead)
	}
	if c := claim(t, keyA); c == nil || c.ID != living.id {
		t.Errorf("claimed %v, want %s", c, living.id)
	}
}

func TestOthersDirectory(t *testing.T) {
	d := stateDir(t)
	if os.Geteuid() != 0 {
		t.Skip("only root makes the directory of another user")
	}
	if err := errors.Join(os.Mkdir(d, 0o777), os.Chown(d, 1, 1)); err != nil {
		t.Fatal(err)
	}
	if c, err := Claim(keyA); c != nil || err == nil {
		t.Errorf("claim: %v, %v; want an error", c, err)
	}
	if err := Keep(t.Context(), keyA, 1, time.Hour, nil); err == nil {
		t.Error("a sandbox waits in the directory of another user, want an error")
	}
}

func TestKey(t *testing.T) {
	key := func(parts ...string) string {
		t.Helper()
		k, err := Key(parts)
		if err != nil || len(k) != keySize {
			t.Fatalf("%q, %v", k, err)
		}
		return k
	}
	t.Setenv("WARM_TEST", "a")
	same := key("--a=1", "--b=2")
	for name, other := range map[string]func() string{
		"another value": func() string { return key("--a=1", "--b=3") },
		"fewer":         func() string { return key("--a=1") },
		"joined":        func() string { return key("--a=1--b=2") },
		"another order": func() string { return key("--b=2", "--a=1") },
		"a variable":    func() string { t.Setenv("WARM_TEST", "b"); return key("--a=1", "--b=2") },
	} {
		if other() == same {
			t.Errorf("%s: the key is the same", name)
		}
		t.Setenv("WARM_TEST", "a")
	}
	t.Setenv("SHLVL", "7")
	t.Setenv("OLDPWD", "/elsewhere")
	if key("--a=1", "--b=2") != same {
		t.Error("another shell has another key")
	}
}
