package mcp

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/llmsandbox/llmsandbox"
)

// Every sandbox has the operator's mounts, and no tool chooses one.
func TestMounts(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("of the operator"), 0o644); err != nil {
		t.Fatal(err)
	}
	client := connect(t, newServer(t, Config{Sandbox: llmsandbox.Options{Mounts: []llmsandbox.Mount{{Source: dir, Target: "/sandbox/data"}}}}), nil)
	const script = "cat data/file; echo x > data/file || echo refused"
	if got := decode[outcome](t, use(t, client, "execute_code", args{"language": "bash", "code": script})); got.Stdout != "of the operatorrefused\n" {
		t.Errorf("execute_code: %+v", got)
	}
	s := open(t, client, args{"language": "bash"})
	if got := decode[outcome](t, use(t, client, "run_in_session", args{"session_id": s.SessionID, "code": script})); got.Stdout != "of the operatorrefused\n" {
		t.Errorf("run_in_session: %+v", got)
	}
	res := use(t, client, "execute_code", args{"language": "bash", "code": "true", "mounts": []any{map[string]any{"source": "/etc", "target": "/data"}}})
	if !res.IsError {
		t.Errorf("a tool took a mount: %+v", res)
	}
}
