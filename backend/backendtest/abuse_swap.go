package backendtest

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
)

// abuse28SwapDuringCopy swaps files for links while they are read. The agent may
// read more than the code, and must not be led to it.
func (s *suite) abuse28SwapDuringCopy(t *testing.T) {
	sb := s.open(t, llmsandbox.Options{Limits: llmsandbox.Limits{CPUs: llmsandbox.Unlimited}})
	ctx, cancel := context.WithCancel(testContext(t))
	done := make(chan struct{})
	started := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = sb.Run(ctx, `
import os
os.makedirs("out/d", exist_ok=True)
os.makedirs("spare", exist_ok=True)
os.symlink("/proc/1/maps", "link"); os.symlink("/proc/1", "folder")
open("file", "w").write("plain"); open("spare/maps", "w").write("plain")
print("started", flush=True)
while True:
    for source in ("link", "file"):
        try: os.unlink("out/x")
        except OSError: pass
        os.link(source, "out/x", follow_symlinks=False)
    os.rename("out/d", "out/e"); os.symlink("/proc/1", "out/d")
    os.unlink("out/d"); os.rename("out/e", "out/d")
    try: os.link("file", "out/d/maps")
    except OSError: pass`, &llmsandbox.RunOptions{Stdout: &first{started: started}, Timeout: 30 * time.Second})
	}()
	<-started
	look := func(what, text string) {
		if text != "" && text != "plain" {
			t.Errorf("%s was led to: %s, want text empty or text = \"plain\"", what, clip(text))
		}
	}
	end := time.Now().Add(3 * time.Second)
	rounds := 0
	for ; time.Now().Before(end); rounds++ {
		// Most of these fail, as they must when a link is there.
		for _, name := range []string{"out/x", "out/d/maps"} {
			b, _ := sb.ReadFile(ctx, name)
			look("ReadFile", string(b))
		}
		dir := t.TempDir()
		_, _ = sb.CopyOut(ctx, here(sb, "/sandbox/out"), dir)
		_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				if !d.Type().IsRegular() {
					t.Errorf("%s is %v, want d.Type().IsRegular() = true", path, d.Type())
				}
				b, _ := os.ReadFile(path)
				look("CopyOut", string(b))
			}
			return nil
		})
		_ = sb.WriteFile(ctx, "out/d/maps", []byte("plain"))
	}
	if rounds < 3 {
		t.Errorf("only %d rounds, want at least 3", rounds)
	}
	cancel()
	<-done
	answers(t, sb)
}
