package server

import (
	"context"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// TestE2BSDK has the SDKs of E2B, as their registry has them, go through their main flows.
func TestE2BSDK(t *testing.T) {
	s := newMachine(t).start("--e2b", "--ttl", "20m", "--max-ttl", "20m")
	key := s.makeKey("--e2b", "sdk")
	scripts, err := filepath.Abs("testdata/e2b")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	do := func(program string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(ctx, program, args...)
		cmd.Dir = dir
		cmd.Env = append(cmd.Environ(), "E2B_API_URL="+s.address, "E2B_SANDBOX_URL="+s.address, "E2B_API_KEY="+key)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", filepath.Base(program), err, out)
		}
	}
	do("python3", "-m", "venv", "venv")
	do(filepath.Join(dir, "venv/bin/pip"), "install", "--quiet", "--disable-pip-version-check", "e2b==2.63.0", "e2b-code-interpreter==2.11.5")
	do(filepath.Join(dir, "venv/bin/python"), filepath.Join(scripts, "sdk.py"))
}
