package store

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"
)

// migrations are for both kinds of databases. Files are never changed after a release; what changes the schema is a new one.
//
//go:embed migrations
var migrations embed.FS

// A dialect is what differs between the kinds of databases.
type dialect struct {
	types *strings.Replacer // puts in what is called otherwise in migrations: {bytes}, and {number}, which the database counts
	lock  int64             // of PostgreSQL; in SQLite a transaction is the only one that writes
}

// A migration changes the schema from the version before its own.
type migration struct {
	version int64
	text    string
}

// readMigrations returns those of a directory, in order: 0001_NAME.sql is the first.
func readMigrations(files fs.FS, dir string) ([]migration, error) {
	entries, err := fs.ReadDir(files, dir) // sorted
	if err != nil {
		return nil, err
	}
	var all []migration
	for _, e := range entries {
		number, _, _ := strings.Cut(e.Name(), "_")
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil || n != int64(len(all)+1) {
			return nil, fmt.Errorf("migration %s/%s: its number must be %d", dir, e.Name(), len(all)+1)
		}
		text, err := fs.ReadFile(files, dir+"/"+e.Name())
		if err != nil {
			return nil, err
		}
		all = append(all, migration{n, string(text)})
	}
	return all, nil
}

// migrate brings the schema up to date.
func migrate(ctx context.Context, db *sql.DB, d dialect) error {
	all, err := readMigrations(migrations, "migrations")
	if err != nil {
		return err
	}
	return apply(ctx, db, d, all)
}

// apply applies those of all that the database has not had: all of them, or none if one fails. Processes
// that start at the same time do so one after the other.
func apply(ctx context.Context, db *sql.DB, d dialect, all []migration) error {
	return transact(ctx, db, func(tx *sql.Tx) error {
		if d.lock != 0 {
			if _, err := tx.ExecContext(ctx, "SELECT pg_advisory_xact_lock($1)", d.lock); err != nil {
				return fmt.Errorf("wait for other processes that start: %w", err)
			}
		}
		const table = "CREATE TABLE IF NOT EXISTS schema_version (version BIGINT NOT NULL PRIMARY KEY, applied BIGINT NOT NULL)"
		if _, err := tx.ExecContext(ctx, table); err != nil {
			return err
		}
		current, err := version(ctx, tx)
		if err != nil {
			return err
		}
		if current > int64(len(all)) {
			return fmt.Errorf("%w: its schema has version %d, and this program knows those up to %d: use a newer one", ErrNewer, current, len(all))
		}
		for _, m := range all[current:] {
			if _, err := tx.ExecContext(ctx, d.types.Replace(m.text)); err != nil {
				return fmt.Errorf("change the schema to version %d: %w", m.version, err)
			}
			if _, err := tx.ExecContext(ctx, "INSERT INTO schema_version (version, applied) VALUES ($1, $2)", m.version, micros(time.Now())); err != nil {
				return fmt.Errorf("note version %d of the schema: %w", m.version, err)
			}
		}
		return nil
	})
}

// version is that of the schema; 0 is that of an empty database.
func version(ctx context.Context, db querier) (int64, error) {
	var n int64
	err := db.QueryRowContext(ctx, "SELECT COALESCE(MAX(version), 0) FROM schema_version").Scan(&n)
	return n, err
}

// A querier is a database or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}
