package store

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
)

// Bounds of records. Open ones are about what goes on, which no project has much of.
const (
	MaxRecord     = 48 << 20       // bytes of one
	recordsAge    = 24 * time.Hour // after which a record is dropped
	openAge       = 30 * recordsAge
	recordsSize   = 64 << 20 // bytes of a project's, of which the oldest are dropped
	recordsNumber = 10_000   // of a project
)

// PutRecord keeps data under a name of a project's sandbox, in place of what is there. Records are dropped when they are a day old, open ones when they
// are thirty; and the oldest that are not open when a project has more than 64 MiB or 10,000 of them. PutRecord fails with backend.ErrInvalid for more
// than MaxRecord bytes.
func (s *Store) PutRecord(ctx context.Context, project, sandbox, name string, open bool, data []byte) error {
	if err := checkRecord(name, data); err != nil {
		return err
	}
	const put = `INSERT INTO records (project, sandbox, name, open, at, data) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (project, sandbox, name) DO UPDATE SET open = excluded.open, at = excluded.at, data = excluded.data`
	if data == nil {
		data = []byte{}
	}
	return s.write(ctx, "keep a record", func(tx *sql.Tx) error {
		now, state := s.now(), 0
		if open {
			state = 1
		}
		_, err := tx.ExecContext(ctx, put, project, sandbox, name, state, micros(now), data)
		if err == nil {
			err = dropOld(ctx, tx, now)
		}
		if err == nil && !open {
			err = dropMany(ctx, tx, project)
		}
		return err
	})
}

func checkRecord(name string, data []byte) error {
	if len(data) > MaxRecord {
		return fmt.Errorf("record %.80q of %d bytes: %w: at most %d are kept", name, len(data), backend.ErrInvalid, MaxRecord)
	}
	return nil
}

// dropOld drops records that are too old.
func dropOld(ctx context.Context, tx *sql.Tx, now time.Time) error {
	_, err := tx.ExecContext(ctx, "DELETE FROM records WHERE at < $1 OR at < $2 AND open = 0", micros(now.Add(-openAge)), micros(now.Add(-recordsAge)))
	return err
}

// dropMany drops what a project has too much of.
func dropMany(ctx context.Context, tx *sql.Tx, project string) error {
	const size = `DELETE FROM records WHERE project = $1 AND open = 0 AND (sandbox, name) IN (
		SELECT sandbox, name FROM (
			SELECT sandbox, name, SUM(LENGTH(data)) OVER newest AS bytes, COUNT(*) OVER newest AS number FROM records WHERE project = $1 AND open = 0
			WINDOW newest AS (ORDER BY at DESC, sandbox, name)
		) AS sums WHERE bytes > $2 OR number > $3)`
	_, err := tx.ExecContext(ctx, size, project, recordsSize, recordsNumber)
	return err
}

// AddRecord keeps data as PutRecord does, not open, and only where there is no record of that name. It reports whether there was none.
func (s *Store) AddRecord(ctx context.Context, project, sandbox, name string, data []byte) (added bool, err error) {
	if err := checkRecord(name, data); err != nil {
		return false, err
	}
	const add = "INSERT INTO records (project, sandbox, name, open, at, data) VALUES ($1, $2, $3, 0, $4, $5) ON CONFLICT DO NOTHING"
	err = s.write(ctx, "keep a record", func(tx *sql.Tx) error {
		now := s.now()
		if err := dropOld(ctx, tx, now); err != nil {
			return err
		}
		n, err := affected(ctx, tx, add, project, sandbox, name, micros(now), data)
		if added = n == 1; err != nil {
			return err
		}
		return dropMany(ctx, tx, project)
	})
	return added && err == nil, err
}

// RemoveRecord drops a record, if it is there.
func (s *Store) RemoveRecord(ctx context.Context, project, sandbox, name string) error {
	_, err := s.exec(ctx, "drop a record", "DELETE FROM records WHERE project = $1 AND sandbox = $2 AND name = $3", project, sandbox, name)
	return err
}

// Record returns what PutRecord has kept. It fails with fs.ErrNotExist.
func (s *Store) Record(ctx context.Context, project, sandbox, name string) (data []byte, open bool, err error) {
	var state, at int64
	const find = "SELECT open, at, data FROM records WHERE project = $1 AND sandbox = $2 AND name = $3"
	found, err := s.one(ctx, "read a record", find, []any{project, sandbox, name}, &state, &at, &data)
	switch {
	case err != nil:
		return nil, false, err
	case !found, state == 0 && fromMicros(at).Before(s.now().Add(-recordsAge)):
		return nil, false, fmt.Errorf("record %.80q: %w", name, fs.ErrNotExist)
	}
	return data, state == 1, nil
}

// OpenRecords returns the names of a sandbox's open records, in their order.
func (s *Store) OpenRecords(ctx context.Context, project, sandbox string) (names []string, err error) {
	err = s.each(ctx, "list records", func(rows *sql.Rows) error {
		var name string
		err := rows.Scan(&name)
		names = append(names, name)
		return err
	}, "SELECT name FROM records WHERE project = $1 AND sandbox = $2 AND open = 1 ORDER BY name", project, sandbox)
	if err != nil {
		return nil, err
	}
	return names, nil
}

// RemoveRecords drops all records of a sandbox.
func (s *Store) RemoveRecords(ctx context.Context, project, sandbox string) error {
	_, err := s.exec(ctx, "drop records", "DELETE FROM records WHERE project = $1 AND sandbox = $2", project, sandbox)
	return err
}
