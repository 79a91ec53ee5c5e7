package local

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
)

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func loops(t *testing.T, cache string) string {
	t.Helper()
	files, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		t.Fatal(err)
	}
	var ours []string
	for _, file := range files {
		// One that goes meanwhile is none that stays.
		if name, err := os.ReadFile(file); err == nil && strings.Contains(string(name), cache) {
			ours = append(ours, string(name))
		}
	}
	return strings.Join(ours, "")
}

func TestNothingGrows(t *testing.T) {
	b := newBackend(t)
	cycle := func() {
		m, err := b.Create(t.Context(), backend.Spec{ID: newID(), Limits: backend.Limits{Memory: 256 << 20, Disk: 16 << 20}})
		if err != nil {
			t.Fatal(err)
		}
		shell(t, m, "sleep 100 & echo x >/sandbox/x")
		if err := m.Close(nil); err != nil {
			t.Fatal(err)
		}
	}
	cycle()
	b.sweeping.Wait()
	before := openFiles(t)
	for range 15 {
		cycle()
	}
	// The disk of the last ones is unmounted after Close has returned.
	deadline := time.Now().Add(5 * time.Second)
	for openFiles(t) > before || loops(t, b.options.CacheDir) != "" {
		if time.Now().After(deadline) {
			t.Fatalf("%d descriptors became %d; loop devices: %q, want time.Now().After(deadline) = false", before, openFiles(t), loops(t, b.options.CacheDir))
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestAgentInMemory(t *testing.T) {
	b := newBackend(t)
	path, err := b.agentInMemory(agentBinary)
	if err != nil {
		t.Fatal(err)
	}
	defer b.memory.Close()
	b.options.agent = path
	if got := shell(t, create(t, b, nil), "echo ok"); got != "ok\n" {
		t.Errorf("prints %q, want \"ok\\n\"", got)
	}
}

// TestEmbeddedAgent uses the agent that users get.
func TestEmbeddedAgent(t *testing.T) {
	b := newBackend(t)
	b.options.agent = ""
	if got := shell(t, create(t, b, nil), "echo ok"); got != "ok\n" {
		t.Errorf("prints %q, want \"ok\\n\"", got)
	}
}
