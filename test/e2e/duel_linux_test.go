package e2e

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox"
)

const (
	// duelVariable is how long the sandboxes of TestInPlaceDuel attack each other; usualDuel is for when it is not set.
	duelVariable = "LLMSANDBOX_TEST_DUEL"
	usualDuel    = 20 * time.Second
)

// duel attacks another sandbox and the caller at random, and looks after what it has to lose itself.
//
//go:embed testdata/duel.py
var duel string

// TestInPlaceDuel: two sandboxes without namespaces attack each other and their caller, and none gets anywhere.
func TestInPlaceDuel(t *testing.T) {
	length, err := time.ParseDuration(os.Getenv(duelVariable))
	if err != nil {
		length = usualDuel
	}
	rng := seeded(t)
	own := t.TempDir()
	canary := filepath.Join(own, "canary")
	if err := os.WriteFile(canary, []byte("canary-of-caller"), 0o600); err != nil {
		t.Fatal(err)
	}
	var before, after unix.Stat_t
	if err := unix.Stat(canary, &before); err != nil {
		t.Fatal(err)
	}
	sleeper := exec.Command("sleep", "100000")
	sleeper.Env = []string{"SECRET=canary-of-caller"}
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sleeper.Process.Kill(); _ = sleeper.Wait() }()

	var sandboxes [2]*llmsandbox.Sandbox
	for i := range sandboxes {
		sandboxes[i] = openInPlace(t, llmsandbox.Options{Env: map[string]string{"SECRET": fmt.Sprintf("canary-of-%d", i)}})
	}
	var both sync.WaitGroup
	for i, sb := range sandboxes {
		other := sandboxes[1-i]
		seed := strconv.FormatUint(rng.Uint64(), 10)
		both.Go(func() {
			res, err := sb.Run(t.Context(), duel, &llmsandbox.RunOptions{Timeout: length + 5*time.Minute, Args: []string{
				seed, strconv.Itoa(int(length.Seconds())), strconv.Itoa(i), other.Workdir(), canary, strconv.Itoa(sleeper.Process.Pid), strconv.Itoa(os.Getpid()), strconv.Itoa(os.Getuid()),
			}})
			if err != nil || res.Status != llmsandbox.StatusOK || !strings.HasSuffix(res.Stdout, "end\n") {
				t.Errorf("sandbox %d: %v, %+v, want that it gets to its end", i, err, res)
				return
			}
			text := res.Stdout + res.Stderr
			for _, wrong := range []string{"REACHED", "HURT", fmt.Sprintf("canary-of-%d", 1-i), "canary-of-caller"} {
				if strings.Contains(text, wrong) {
					t.Errorf("sandbox %d says %s, want it not to:\n%s", i, wrong, clip(text))
				}
			}
			t.Logf("sandbox %d: %s", i, res.Stdout)
		})
	}
	both.Wait()
	if err := sleeper.Process.Signal(unix.Signal(0)); err != nil {
		t.Errorf("the caller's process: %v, want that it lives", err)
	}
	if nice, err := unix.Getpriority(unix.PRIO_PROCESS, sleeper.Process.Pid); err != nil || nice != ownPriority(t) {
		t.Errorf("the caller's process has priority %d, %v, want %d", nice, err, ownPriority(t))
	}
	if err := unix.Stat(canary, &after); err != nil || after.Mode != before.Mode || after.Ctim != before.Ctim || after.Nlink != before.Nlink {
		t.Errorf("the caller's file: %+v, %v, want it as it was", after, err)
	}
	if entries, err := os.ReadDir(own); err != nil || len(entries) != 1 {
		t.Errorf("the caller's directory: %v, %v, want the one file", entries, err)
	}
}

// ownPriority is this process's priority, as the kernel returns it.
func ownPriority(t *testing.T) int {
	t.Helper()
	n, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
