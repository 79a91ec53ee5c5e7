package podman

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"
)

// A service is asked once, by whichever process, until it is started anew or the answer is old.
func TestKnownInfo(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	t.Setenv("LLMSANDBOX_STATE_DIR", state)
	socket := filepath.Join(t.TempDir(), "s")
	var asked atomic.Int32
	start := func() *http.Server {
		l, err := net.Listen("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			asked.Add(1)
			_, _ = w.Write([]byte(`{"host": {"arch": "amd64", "cgroupVersion": "v2", "cgroupControllers": ["memory"]}, "version": {"Version": "5.0"}}`))
		})}
		go func() { _ = s.Serve(l) }() // it ends with Close
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	ask := func(what string, want int32) {
		t.Helper()
		c, err := NewClient(&ClientOptions{Host: "unix://" + socket})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		i, err := knownInfo(t.Context(), c)
		if err != nil || i.ServerVersion != "5.0" || i.CgroupVersion != "2" || !i.MemoryLimit || i.PidsLimit {
			t.Errorf("%s: %+v, %v, want version 5.0 with a limit of memory alone", what, i, err)
		}
		if got := asked.Load(); got != want {
			t.Errorf("%s: asked %d times, want %d", what, got, want)
		}
	}
	kept := func() string {
		t.Helper()
		files, err := filepath.Glob(filepath.Join(state, prefix+"*"))
		if err != nil || len(files) != 1 {
			t.Fatalf("kept are %v, %v, want one file", files, err)
		}
		return files[0]
	}
	s := start()
	ask("at first", 1)
	ask("again", 1)
	if err := os.WriteFile(kept(), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	ask("with a broken file", 2)
	old := time.Now().Add(-maxAge - time.Second)
	if err := os.Chtimes(kept(), old, old); err != nil {
		t.Fatal(err)
	}
	ask("with an old file", 3)
	if err := os.Chtimes(kept(), old, old); err != nil {
		t.Fatal(err)
	}
	_ = s.Close()
	start()
	ask("of another service", 4)
	ask("of that again", 4)
	kept()
}
