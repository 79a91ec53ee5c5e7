package cli

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/httpapi/database"
	"github.com/llmsandbox/llmsandbox/internal/service/store"
)

// serveKey runs llmsandbox serve key, and returns what it prints on standard output and standard error.
func serveKey(t *testing.T, args ...string) (stdout, messages string, err error) {
	t.Helper()
	root := &cobra.Command{Use: "llmsandbox", SilenceUsage: true, SilenceErrors: true}
	serve := &cobra.Command{Use: "serve"}
	serve.AddCommand(newServeKeyCommand())
	root.AddCommand(serve)
	root.SetArgs(append([]string{"serve", "key"}, args...))
	files := [2]*os.File{}
	for i := range files {
		if files[i], err = os.CreateTemp(t.TempDir(), "output"); err != nil {
			t.Fatal(err)
		}
		defer files[i].Close()
	}
	out, messagesBefore := os.Stdout, stderr
	os.Stdout, stderr = files[0], &console{f: files[1]}
	err = root.ExecuteContext(t.Context())
	os.Stdout, stderr = out, messagesBefore
	var texts [2]string
	for i, f := range files {
		data, readErr := os.ReadFile(f.Name())
		if readErr != nil {
			t.Fatal(readErr)
		}
		texts[i] = string(data)
	}
	return texts[0], texts[1], err
}

// authenticate asks the server's database for the key of a secret.
func authenticate(t *testing.T, dir, secret string) (key database.Key, err error) {
	t.Helper()
	err = (&serverState{State: dir}).with(t.Context(), func(db *store.Store) error {
		key, err = db.Authenticate(t.Context(), secret)
		return err
	})
	return key, err
}

func TestServeKey(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "server")
	out, messages, err := serveKey(t, "create", "ci", "--state", dir, "--project", "web", "--scope", "write", "--scope", "read", "--expires", "90d")
	if err != nil || !regexp.MustCompile(`^lsb_[a-z2-7]{8}_[a-z2-7]{52}\n$`).MatchString(out) {
		t.Fatalf("create: got %q, %v, want a secret and nothing else", out, err)
	}
	secret := strings.TrimSpace(out)
	if strings.Count(messages, "\n") != 1 || !strings.Contains(messages, "not shown again") || strings.Contains(messages, secret) {
		t.Errorf("create: got message %q, want one line without the secret that says so", messages)
	}
	if info, err := os.Stat(filepath.Join(dir, "server.db")); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("server.db: got %v, want a file of mode 0600", err)
	}
	key, err := authenticate(t, dir, secret)
	ends := time.Until(key.Expires)
	if err != nil || key.Name != "ci" || key.Project != "web" || len(key.Scopes) != 2 || ends > 90*24*time.Hour || ends < 89*24*time.Hour {
		t.Errorf("got key %+v, %v, want ci of web with two scopes for 90 days", key, err)
	}

	if out, _, err := serveKey(t, "create", "dev", "--state", dir); err != nil || out == "" {
		t.Fatalf("create: got %q, %v, want a secret", out, err)
	}
	out, _, err = serveKey(t, "list", "--state", dir)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if err != nil || len(lines) != 3 || !strings.HasPrefix(lines[0], "ID ") {
		t.Fatalf("list: got %q, %v, want a header and two keys", out, err)
	}
	if f := strings.Fields(lines[1]); f[1] != "dev" || f[2] != "default" || f[3] != "read" || f[4] != "write" || f[6] != "never" || f[7] != "active" {
		t.Errorf("list: got %q, want dev of default with read and write for ever", lines[1])
	}
	if f := strings.Fields(lines[2]); f[0] != key.ID || f[1] != "ci" || f[2] != "web" || f[len(f)-1] != "active" {
		t.Errorf("list: got %q, want %s, ci of web", lines[2], key.ID)
	}

	if out, _, err := serveKey(t, "revoke", "ci", "--state", dir); err != nil || !strings.Contains(out, key.ID) {
		t.Errorf("revoke: got %q, %v, want id %s", out, err, key.ID)
	}
	if _, err := authenticate(t, dir, secret); !errors.Is(err, store.ErrBadKey) {
		t.Errorf("a revoked key: got %v, want store.ErrBadKey", err)
	}
	out, _, err = serveKey(t, "list", "--json", "--state", dir)
	var listed []map[string]any
	if jsonErr := json.Unmarshal([]byte(out), &listed); err != nil || jsonErr != nil || len(listed) != 2 {
		t.Fatalf("list --json: got %q, %v, %v, want two keys", out, err, jsonErr)
	}
	if _, expires := listed[0]["expires"]; expires || listed[0]["revoked"] != nil || listed[1]["id"] != key.ID || listed[1]["revoked"] == nil || listed[1]["project_id"] != key.ProjectID {
		t.Errorf("list --json: got %v, want dev without an end, and ci revoked", listed)
	}
}

func TestServeKeyListIsEmpty(t *testing.T) {
	if out, _, err := serveKey(t, "list", "--json", "--state", t.TempDir()); err != nil || out != "[]\n" {
		t.Errorf("got %q, %v, want an empty array", out, err)
	}
}

// Without --state, keys are where the server looks for them.
func TestServeKeyDefaultState(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	t.Setenv("LLMSANDBOX_STATE_DIR", state)
	out, _, err := serveKey(t, "create", "a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := authenticate(t, filepath.Join(state, "server"), strings.TrimSpace(out)); err != nil {
		t.Errorf("got %v, want the key in the default directory", err)
	}
}

func TestServeKeyThatMakesNoSense(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		args []string
		want error // nil: any
		text string
	}{
		"no name":             {[]string{"create"}, nil, "arg"},
		"a bad name":          {[]string{"create", "a b"}, backend.ErrInvalid, `"a b"`},
		"an unknown scope":    {[]string{"create", "a", "--scope", "root"}, backend.ErrInvalid, "read, write"},
		"no duration":         {[]string{"create", "a", "--expires", "soon"}, nil, "--expires"},
		"a past":              {[]string{"create", "a", "--expires", "-1d"}, nil, "--expires"},
		"an empty database":   {[]string{"revoke", "a"}, store.ErrNoKey, `"a"`},
		"a database's file":   {[]string{"list", "--database", "server.db"}, nil, "--state"},
		"both databases":      {[]string{"list", "--database", "postgres://h/db"}, nil, "exclude each other"},
		"a database's secret": {[]string{"list", "--database", "mysql://u:hunter2@h/db"}, nil, "postgres://"},
	} {
		out, _, err := serveKey(t, append(c.args, "--state", dir)...)
		if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) || strings.Contains(err.Error(), "hunter2") || out != "" {
			t.Errorf("%s: got %q, %v, want an error with %q, no secret and no output", name, out, err, c.text)
		}
	}
}

// A key whose secret cannot be printed is of no use to anyone.
func TestServeKeyIsRevokedUnseen(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(read.Close(), write.Close()); err != nil {
		t.Fatal(err)
	}
	out := os.Stdout
	os.Stdout = write
	defer func() { os.Stdout = out }()
	err = (&serverState{State: t.TempDir()}).with(t.Context(), func(db *store.Store) error {
		if err := createKey(t.Context(), db, database.NewKey{Name: "a"}, false); !errors.Is(err, os.ErrClosed) {
			t.Errorf("got %v, want os.ErrClosed", err)
		}
		keys, err := db.Keys(t.Context())
		if err == nil && (len(keys) != 1 || keys[0].Revoked.IsZero()) {
			t.Errorf("got keys %+v, want one that is revoked", keys)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestKeyStatus(t *testing.T) {
	now := time.Now()
	for want, k := range map[string]database.Key{"active": {Expires: now.Add(1)}, "expired": {Expires: now}, "revoked": {Expires: now, Revoked: now}} {
		if got := keyStatus(k, now); got != want {
			t.Errorf("%+v: got %s, want %s", k, got, want)
		}
	}
}
