package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/llmsandbox/llmsandbox/backend"
)

// sqliteConns bounds the connections: readers do not wait for each other, nor for a writer.
const sqliteConns = 4

func openSQLite(ctx context.Context, path string) (*Store, error) {
	path, err := filepath.Abs(path)
	if err == nil {
		err = makePrivateFile(path)
	}
	if err != nil {
		return nil, fmt.Errorf("the server's database: %w", err)
	}
	db, err := sql.Open("sqlite", sqliteURL(path))
	if err != nil {
		return nil, fmt.Errorf("the server's database %s: %w", path, err)
	}
	db.SetMaxOpenConns(sqliteConns)
	db.SetMaxIdleConns(sqliteConns)
	if err := logAhead(ctx, db); err != nil {
		return nil, errors.Join(fmt.Errorf("the server's database %s: open it: %w", path, explain(err)), db.Close())
	}
	// Counted numbers can only be a key.
	types := strings.NewReplacer("{bytes}", "BLOB", "{number} PRIMARY KEY", "INTEGER PRIMARY KEY AUTOINCREMENT")
	return start(ctx, db, path, dialect{types: types}, 1)
}

// makePrivateFile makes the file for its owner alone, unless it is there; SQLite gives the files that
// it puts beside it the same mode. A file that others may read or write is refused rather than given
// another mode: whoever could write it may have put in a key, which only its owner can look into.
func makePrivateFile(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		return f.Close()
	}
	if !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make the file: %w", err)
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s: %w: it is no regular file", path, backend.ErrInvalid)
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("%s: %w: others may read or write it (mode %#o): chmod 600 it, and check its keys with: llmsandbox serve key list",
			path, backend.ErrInvalid, info.Mode().Perm())
	}
	return nil
}

// sqliteURL names the file and what each connection to it sets. A commit is on the disk when it
// returns, since a revoked key must stay revoked. A transaction takes the lock of writers when it begins:
// one that took it later would fail if another had written since.
func sqliteURL(path string) string {
	slashed := filepath.ToSlash(path)
	if !strings.HasPrefix(slashed, "/") {
		slashed = "/" + slashed // C:/...
	}
	settings := url.Values{
		"_txlock": {"immediate"},
		"_pragma": {fmt.Sprintf("busy_timeout(%d)", busyTimeout.Milliseconds()), "foreign_keys(1)", "synchronous(FULL)"},
	}
	return "file://" + (&url.URL{Path: slashed}).EscapedPath() + "?" + settings.Encode()
}

// logAhead has the file written through a log, so that readers do not wait for writers. The file keeps
// that. While another process does the same, SQLite is busy without waiting, and is asked again.
func logAhead(ctx context.Context, db *sql.DB) error {
	ctx, cancel := context.WithTimeout(ctx, busyTimeout)
	defer cancel()
	for pause := time.Millisecond; ; pause *= 2 {
		var mode string
		err := db.QueryRowContext(ctx, "PRAGMA journal_mode = WAL").Scan(&mode)
		switch {
		case err == nil && mode != "wal":
			return fmt.Errorf("its file system cannot share memory between processes (journal mode %s): use a local disk", mode)
		case err == nil || !errors.Is(explain(err), backend.ErrLocked):
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return err
		}
	}
}

// explain gives an error of SQLite its meaning and what to do; another is returned as it is.
func explain(err error) error {
	var failure *sqlite.Error
	if !errors.As(err, &failure) {
		return err
	}
	switch failure.Code() & 0xff { // without what extends it
	case sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT:
		return fmt.Errorf("%w: %w: restore it from a backup, or move it away and make new keys", ErrDamaged, err)
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return fmt.Errorf("%w: %w: try again", backend.ErrLocked, err)
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN:
		return fmt.Errorf("%w: its directory must be one that this user can write", err)
	case sqlite3.SQLITE_FULL:
		return fmt.Errorf("%w: make space on its disk", err)
	}
	return err
}
