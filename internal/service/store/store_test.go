package store

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/httpapi/database"
	"github.com/llmsandbox/llmsandbox/internal/service"
)

// What was written is there when a database is opened again.
func TestOpenAgain(t *testing.T) {
	onBoth(t, func(t *testing.T, source string) {
		first, err := Open(t.Context(), source)
		if err != nil {
			t.Fatal(err)
		}
		_, secret := create(t, first, database.NewKey{Name: "a"})
		if err := errors.Join(first.Ping(t.Context()), first.Close()); err != nil {
			t.Fatal(err)
		}
		if err := first.Ping(t.Context()); err == nil {
			t.Error("ping after close: got no error, want one")
		}
		if _, err := open(t, source).Authenticate(t.Context(), secret); err != nil {
			t.Errorf("got %v, want no error", err)
		}
	})
}

func TestContextEndsCalls(t *testing.T) {
	onBoth(t, func(t *testing.T, source string) {
		s := open(t, source)
		over, cancel := context.WithCancel(t.Context())
		cancel()
		_, secret := newSecret()
		_, _, createErr := s.CreateKey(over, database.NewKey{Name: "a"})
		_, authErr := s.Authenticate(over, secret)
		_, keysErr := s.Keys(over)
		_, entriesErr := s.Entries(over, database.AuditQuery{})
		for name, err := range map[string]error{"CreateKey": createErr, "Authenticate": authErr, "Keys": keysErr, "Entries": entriesErr, "Audit": s.Audit(over, database.AuditEvent{}), "Ping": s.Ping(over)} {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s: got %v, want context.Canceled", name, err)
			}
		}
		if keys, err := s.Keys(t.Context()); err != nil || len(keys) != 0 {
			t.Errorf("afterwards: got %d keys, %v, want none", len(keys), err)
		}
	})
}

func TestSourcesThatMakeNoSense(t *testing.T) {
	dir := t.TempDir()
	readable := filepath.Join(dir, "readable.db")
	if err := os.WriteFile(readable, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(readable, 0o640); err != nil {
		t.Fatal(err)
	}
	const secret = "hunter2secret"
	cases := map[string]struct {
		source string
		want   error
	}{
		"nothing":               {"", backend.ErrInvalid},
		"another kind":          {"mysql://root:" + secret + "@localhost/db", backend.ErrInvalid},
		"a directory":           {dir, backend.ErrInvalid},
		"no such directory":     {filepath.Join(dir, "none", "server.db"), fs.ErrNotExist},
		"a port that is none":   {"postgres://u:" + secret + "@localhost:port/db", backend.ErrInvalid},
		"an unescaped password": {"postgres://u:" + secret + "/[@localhost:1/db?sslmode=nonsense&password=" + secret, backend.ErrInvalid},
		"no host":               {"postgres://u:" + secret + "/db", backend.ErrInvalid},
		"an unknown sslmode":    {"postgres://localhost/db?sslmode=nonsense&password=" + secret, backend.ErrInvalid},
		"nobody listens":        {"postgres://u:" + secret + "@/db?host=" + dir + "&sslmode=disable", service.ErrUnavailable}, // and not that there is no such file
	}
	if runtime.GOOS != "windows" {
		cases["a file that others read"] = struct {
			source string
			want   error
		}{readable, backend.ErrInvalid}
	}
	for name, c := range cases {
		s, err := Open(t.Context(), c.source)
		if !errors.Is(err, c.want) || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: got %v, want %v without the password", name, err, c.want)
		}
		if s != nil {
			t.Errorf("%s: got a store, want none", name)
		}
	}
}

// The file and those beside it are for their owner alone, whatever the mask of the process.
func TestFilesArePrivate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there are no modes on Windows")
	}
	path := newFile(t)
	create(t, open(t, path), database.NewKey{Name: "a"})
	files, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(files) != 3 {
		t.Fatalf("got %d files, %v, want the database, its log and its index", len(files), err)
	}
	for _, f := range files {
		if info, err := f.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: got mode %v, %v, want 0600", f.Name(), info.Mode(), err)
		}
	}
}

func TestDamagedFiles(t *testing.T) {
	newDatabase := func() []byte {
		path := newFile(t)
		s, err := Open(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		create(t, s, database.NewKey{Name: "a"})
		if err := s.Close(); err != nil { // which puts the log into the file
			t.Fatal(err)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	whole := newDatabase()
	damaged := bytes.Clone(whole)
	for i := range damaged[4096:] { // all pages but the first
		damaged[4096+i] = 0xa5
	}
	for name, data := range map[string][]byte{
		"no database": []byte(strings.Repeat("hello, world\n", 1000)), "another beginning": append([]byte("x"), whole[1:]...), "other pages": damaged, "its end is missing": whole[:4096],
	} {
		path := newFile(t)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Open(t.Context(), path)
		if err == nil { // it is read later
			_, err = s.Keys(t.Context())
			err = errors.Join(err, s.Close())
		}
		if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "backup") {
			t.Errorf("%s: got %v, want ErrDamaged with the path and what to do", name, err)
		}
	}
}

// Processes that open an empty database at once all find it in order.
func TestProcessesOpenAtOnce(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	onBoth(t, func(t *testing.T, source string) {
		const processes = 4
		var outputs [processes]bytes.Buffer
		var inputs [processes]interface{ Close() error }
		var commands [processes]*exec.Cmd
		for i := range commands {
			cmd := exec.Command(program)
			cmd.Env = append(os.Environ(), openVariable+"="+source)
			cmd.Stderr = &outputs[i]
			in, err := cmd.StdinPipe()
			if err == nil {
				err = cmd.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			commands[i], inputs[i] = cmd, in
		}
		for _, in := range inputs {
			if err := in.Close(); err != nil {
				t.Error(err)
			}
		}
		for i, cmd := range commands {
			if err := cmd.Wait(); err != nil {
				t.Errorf("process %d: %v, want no error: %s", i, err, outputs[i].String())
			}
		}
		create(t, open(t, source), database.NewKey{Name: "a"})
	})
}

func TestHandlesOpenAtOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, source string) {
		errs := make([]error, 8)
		var calls sync.WaitGroup
		for i := range errs {
			calls.Go(func() {
				s, err := Open(t.Context(), source)
				if err == nil {
					err = errors.Join(s.Ping(t.Context()), s.Close())
				}
				errs[i] = err
			})
		}
		calls.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Errorf("got %v, want no error", err)
		}
	})
}

// A transaction is the only one that writes from its beginning on, since one that began by reading fails
// if another writes before it does.
func TestTransactionsWriteFromTheBeginning(t *testing.T) {
	path := newFile(t)
	s := open(t, path)
	other, err := sql.Open("sqlite", strings.Replace(sqliteURL(path), "busy_timeout%2810000%29", "busy_timeout%280%29", 1))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	const insert = "INSERT INTO projects (id, name, created) VALUES ('x', 'x', 0)"
	err = s.write(t.Context(), "test", func(*sql.Tx) error {
		_, err := other.ExecContext(t.Context(), insert)
		return explain(err)
	})
	if !errors.Is(err, backend.ErrLocked) {
		t.Errorf("got %v, want backend.ErrLocked", err)
	}
	if _, err := other.ExecContext(t.Context(), insert); err != nil {
		t.Errorf("afterwards: got %v, want no error", err)
	}
}

func TestNewerDatabase(t *testing.T) {
	onBoth(t, func(t *testing.T, source string) {
		s := open(t, source)
		if _, err := s.db.ExecContext(t.Context(), "INSERT INTO schema_version (version, applied) VALUES (99, 0)"); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(t.Context(), source); !errors.Is(err, ErrNewer) || !strings.Contains(err.Error(), "version 99") {
			t.Errorf("got %v, want ErrNewer with the version", err)
		}
	})
}

// A later version changes what an earlier one has made, and a change that fails leaves nothing behind.
func TestMigrations(t *testing.T) {
	var (
		one   = migration{1, "CREATE TABLE a (x BIGINT); INSERT INTO a (x) VALUES (1);"}
		two   = migration{2, "ALTER TABLE a ADD COLUMN y BIGINT; UPDATE a SET y = x + 1;"}
		fails = migration{2, "ALTER TABLE a ADD COLUMN y BIGINT; UPDATE a SET z = 1;"}
	)
	onBoth(t, func(t *testing.T, source string) {
		s := open(t, source)
		d := dialect{types: strings.NewReplacer()}
		if strings.HasPrefix(source, "postgres") {
			d.lock = migrationLock
		}
		if _, err := s.db.ExecContext(t.Context(), "DELETE FROM schema_version"); err != nil {
			t.Fatal(err)
		}
		for i, c := range []struct {
			all  []migration
			want int64
			ok   bool
		}{{[]migration{one}, 1, true}, {[]migration{one, fails}, 1, false}, {[]migration{one, two}, 2, true}, {[]migration{one, two}, 2, true}, {[]migration{one}, 2, false}} {
			err := apply(t.Context(), s.db, d, c.all)
			got, versionErr := version(t.Context(), s.db)
			if (err == nil) != c.ok || got != c.want || versionErr != nil {
				t.Errorf("step %d: got %v and version %d, %v, want success %v and version %d", i, err, got, versionErr, c.ok, c.want)
			}
		}
		var y sql.NullInt64
		if err := s.db.QueryRowContext(t.Context(), "SELECT y FROM a").Scan(&y); err != nil || y.Int64 != 2 {
			t.Errorf("got %d, %v, want 2", y.Int64, err)
		}
	})
}

func TestReadMigrations(t *testing.T) {
	file := &fstest.MapFile{Data: []byte("SELECT 1")}
	for name, c := range map[string]struct {
		files fstest.MapFS
		want  int // -1: an error
	}{
		"in order":     {fstest.MapFS{"m/0002_b.sql": file, "m/0001_a.sql": file}, 2},
		"a gap":        {fstest.MapFS{"m/0001_a.sql": file, "m/0003_b.sql": file}, -1},
		"two of one":   {fstest.MapFS{"m/0001_a.sql": file, "m/0001_b.sql": file}, -1},
		"no number":    {fstest.MapFS{"m/readme.md": file}, -1},
		"no directory": {fstest.MapFS{}, -1},
	} {
		got, err := readMigrations(c.files, "m")
		if (err != nil) != (c.want < 0) || err == nil && len(got) != c.want {
			t.Errorf("%s: got %d, %v, want %d", name, len(got), err, c.want)
		}
	}
}
