// Package store is the database of a server: its projects, their API keys, and the log of what
// was done with them. It is an SQLite file for one machine, or a PostgreSQL database that several
// servers share. Both hold the same, and take the same statements.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/errclass"
	"github.com/llmsandbox/llmsandbox/internal/httpgate"
	"github.com/llmsandbox/llmsandbox/internal/service"
)

// Errors of a store. Arguments that make no sense are backend.ErrInvalid.
var (
	// ErrBadKey: a secret is malformed or unknown, or its key is revoked or expired. Which of them is
	// not said, so that nobody learns by trying which keys there are.
	ErrBadKey = errclass.Of(httpgate.ErrUnknown, errors.New("the API key is not valid"))
	// ErrNoKey: no key has that id or name.
	ErrNoKey = errclass.Of(backend.ErrNotFound, errors.New("no such API key"))
	// ErrKeyExists: another key of the project has the name and is not revoked.
	ErrKeyExists = errclass.Of(fs.ErrExist, errors.New("the name is in use"))
	// ErrNewer: a newer program has changed the schema of the database.
	ErrNewer = errors.New("the database is of a newer version of this program")
	// ErrDamaged: the file is damaged, or no SQLite database.
	ErrDamaged = errors.New("the file is damaged, or no SQLite database")
)

// A Store is an open database. It is safe for concurrent use, and other processes may have the same
// database open. Methods wait for at most busyTimeout for others that write to an SQLite file, and
// fail with backend.ErrLocked after that. Whatever is the database's fault is service.ErrUnavailable.
type Store struct {
	db      *sql.DB
	name    string        // of the database in errors; it has no password
	writers chan struct{} // holds one for each transaction that writes
	now     func() time.Time

	unwritten atomic.Bool   // the last that was to be written could not be
	keepAudit time.Duration // 0: for ever
	pruned    atomic.Int64  // when that was done last, in microseconds
}

// busyTimeout is how long a process waits for another that writes to the same SQLite file. Each holds
// it for milliseconds.
const busyTimeout = 10 * time.Second

// Open opens a server's database and brings its schema up to date. source is the path of an SQLite
// file, or a postgres:// URL of a database that is used for nothing else. The file is made if it is
// missing, for its owner alone; its directory must exist. Open fails with backend.ErrInvalid for
// another source, and for a file that others may read or write; with ErrDamaged for a file that is
// no intact database; and with ErrNewer for a database that a newer program has changed.
func Open(ctx context.Context, source string) (*Store, error) {
	scheme, _, isURL := strings.Cut(source, "://")
	switch {
	case source == "":
		return nil, fmt.Errorf("the server's database: %w: name a file or a postgres:// URL", backend.ErrInvalid)
	case isURL && (scheme == "postgres" || scheme == "postgresql"):
		return openPostgres(ctx, source)
	case isURL: // whose password is not repeated
		return nil, fmt.Errorf("the server's database: %w: it cannot be of the kind %.40q: use a file or a postgres:// URL", backend.ErrInvalid, scheme)
	}
	return openSQLite(ctx, source)
}

// start brings the schema up to date, and returns the store. It closes db if it fails.
func start(ctx context.Context, db *sql.DB, name string, d dialect, writers int) (*Store, error) {
	s := &Store{db: db, name: name, writers: make(chan struct{}, writers), now: time.Now}
	if err := migrate(ctx, db, d); err != nil {
		return nil, errors.Join(s.failed("open it", err), db.Close())
	}
	return s, nil
}

// Close closes the database after the calls under way.
func (s *Store) Close() error {
	if err := s.db.Close(); err != nil {
		return s.failed("close it", err)
	}
	return nil
}

// How long a database may take to answer. A write can be a large record, or remove many entries.
const (
	readTime  = 10 * time.Second
	writeTime = 30 * time.Second
)

// Ping fails if the database cannot be read, or if what was last to be written could not be, and cannot be now.
func (s *Store) Ping(ctx context.Context) error {
	if _, err := version(ctx, s.db); err != nil {
		return s.failed("read it", err)
	}
	if !s.unwritten.Load() {
		return nil
	}
	return s.PutRecord(ctx, "", "", "ping", false, make([]byte, 64<<10)) // a smaller one may find room where others do not
}

// failed tells of which database an error is, and what to do about it.
func (s *Store) failed(what string, err error) error {
	var system syscall.Errno
	if errors.As(err, &system) { // that there is no socket does not mean that there is no such record
		err = errors.New(err.Error())
	}
	return errclass.Errorf(service.ErrUnavailable, "the server's database %s: %s: %w", s.name, what, explain(err))
}

// write runs a transaction that writes, and once more where it was ended for others to go on. Those of this process wait for each other here, in turn and for
// as long as ctx lets them: SQLite itself has one writer at a time, and waits by asking again and again.
func (s *Store) write(ctx context.Context, what string, do func(*sql.Tx) error) error {
	asked := ctx
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	select {
	case s.writers <- struct{}{}:
		defer func() { <-s.writers }()
	case <-ctx.Done():
		return s.failed(what, context.Cause(ctx))
	}
	err := transact(ctx, s.db, do)
	for deadlocked(err) {
		err = transact(ctx, s.db, do)
	}
	switch {
	case err == nil || errors.Is(err, ErrNoKey) || errors.Is(err, ErrKeyExists) || errors.Is(err, service.ErrManyKeys) || errors.Is(err, ErrBadKey) || errors.Is(err, backend.ErrInvalid):
		s.unwritten.Store(false)
		return err // not the database's
	default:
		if asked.Err() == nil {
			s.unwritten.Store(true)
		}
		return s.failed(what, err)
	}
}

// exec is write for one statement. It returns how many rows that has changed.
func (s *Store) exec(ctx context.Context, what, statement string, args ...any) (changed int64, err error) {
	err = s.write(ctx, what, func(tx *sql.Tx) error {
		changed, err = affected(ctx, tx, statement, args...)
		return err
	})
	return changed, err
}

// affected executes a statement and returns how many rows it has changed.
func affected(ctx context.Context, tx *sql.Tx, statement string, args ...any) (int64, error) {
	done, err := tx.ExecContext(ctx, statement, args...)
	if err != nil {
		return 0, err
	}
	return done.RowsAffected()
}

// each calls row for each row of a query that reads.
func (s *Store) each(ctx context.Context, what string, row func(*sql.Rows) error, query string, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	if err := rows(ctx, s.db, row, query, args...); err != nil {
		return s.failed(what, err)
	}
	return nil
}

// one reads the row of a query that finds one at most, and reports whether it has.
func (s *Store) one(ctx context.Context, what, query string, args []any, to ...any) (found bool, err error) {
	err = s.each(ctx, what, func(rows *sql.Rows) error {
		found = true
		return rows.Scan(to...)
	}, query, args...)
	return found, err
}

// rows is each in a transaction, or without its bound and the text of its error.
func rows(ctx context.Context, db querier, row func(*sql.Rows) error, query string, args ...any) error {
	found, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer found.Close()
	for found.Next() {
		if err := row(found); err != nil {
			return err
		}
	}
	return found.Err()
}

// transact commits what do has done, unless it fails.
func transact(ctx context.Context, db *sql.DB, do func(*sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := do(tx); err != nil {
		if undo := tx.Rollback(); undo != nil && !errors.Is(undo, sql.ErrTxDone) { // done: by the end of ctx
			return errors.Join(err, undo)
		}
		return err
	}
	return tx.Commit()
}

// micros is a time as the database has it.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// fromMicros is the inverse of micros, in UTC.
func fromMicros(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMicro(n).UTC()
}
