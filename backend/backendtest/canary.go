package backendtest

import (
	"os"
	"testing"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/test/abuse"
)

// plantCanaries puts the canary everywhere outside of the sandbox under test: the
// home of the caller, the host's /tmp, the caller's environment and memory, and the
// files, environment and command lines of another sandbox.
func (s *suite) plantCanaries(t *testing.T) {
	t.Helper()
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{home, os.TempDir()} {
		plantFile(t, dir)
	}
	t.Setenv("LLMSANDBOX_E2E_SECRET", abuse.Canary)
	other := s.open(t, llmsandbox.Options{Env: map[string]string{"SECRET": abuse.Canary}})
	ctx := testContext(t)
	homeInside, err := other.Shell(ctx, "printf %s \"$HOME\"", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{here(other, "/sandbox/secret"), here(other, "/tmp/secret"), homeInside.Stdout + "/secret"} {
		if err := other.WriteFile(ctx, path, []byte(abuse.Canary)); err != nil {
			t.Fatal(err)
		}
	}
	res, err := other.Shell(ctx, "cp secret /dev/shm/; sh -c 'sleep 3600; :' "+abuse.Canary+" >/dev/null 2>&1 &",
		&llmsandbox.ExecOptions{KeepChildren: true})
	if err != nil {
		t.Fatal(err)
	}
	wantExit(t, res, 0)
}

// hostTexts are what distinguishes one host and user from others.
func hostTexts() []string {
	var texts []string
	add := func(text string, common ...string) {
		for _, c := range common {
			if text == c {
				return
			}
		}
		if len(text) > 4 { // shorter ones are found by chance
			texts = append(texts, text)
		}
	}
	if name, err := os.Hostname(); err == nil {
		add(name, "sandbox", "localhost", "debian", "ubuntu")
	}
	if home, err := os.UserHomeDir(); err == nil {
		add(home, "/root")
	}
	return texts
}
