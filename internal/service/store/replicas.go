package store

import (
	"context"
	"database/sql"
	"errors"

	"github.com/llmsandbox/llmsandbox/internal/replicas"
)

// Beat implements replicas.Store.
func (s *Store) Beat(ctx context.Context, id, url string) (all []replicas.Replica, err error) {
	const beat = "INSERT INTO replicas (id, url, beats) VALUES ($1, $2, 1) ON CONFLICT (id) DO UPDATE SET url = excluded.url, beats = replicas.beats + 1"
	err = s.write(ctx, "say that this server lives", func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, beat, id, url); err != nil {
			return err
		}
		rows, err := tx.QueryContext(ctx, "SELECT id, url, beats FROM replicas ORDER BY id")
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var r replicas.Replica
			if err := rows.Scan(&r.ID, &r.URL, &r.Beats); err != nil {
				return err
			}
			all = append(all, r)
		}
		return rows.Err()
	})
	return all, err
}

// Leave implements replicas.Store.
func (s *Store) Leave(ctx context.Context, id string, beats int64) error {
	return s.write(ctx, "drop a server", func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "DELETE FROM replicas WHERE id = $1 AND ($2 < 0 OR beats <= $2)", id, beats)
		return err
	})
}

// Held implements replicas.Store. It returns them in the order of their ids.
func (s *Store) Held(ctx context.Context, id string) (all []replicas.Held, err error) {
	const list = "SELECT sandbox, project, replica, network FROM held WHERE replica = $1 OR replica NOT IN (SELECT id FROM replicas) ORDER BY sandbox"
	rows, err := s.db.QueryContext(ctx, list, id)
	if err != nil {
		return nil, s.failed("list what a server holds", err)
	}
	defer rows.Close()
	for rows.Next() {
		var h replicas.Held
		if err := rows.Scan(&h.Sandbox, &h.Project, &h.Replica, &h.Network); err != nil {
			return nil, s.failed("list what a server holds", err)
		}
		all = append(all, h)
	}
	if err := rows.Err(); err != nil {
		return nil, s.failed("list what a server holds", err)
	}
	return all, nil
}

// Holder implements replicas.Store.
func (s *Store) Holder(ctx context.Context, sandbox string) (h replicas.Held, ok bool, err error) {
	h.Sandbox = sandbox
	err = s.db.QueryRowContext(ctx, "SELECT project, replica, network FROM held WHERE sandbox = $1", sandbox).Scan(&h.Project, &h.Replica, &h.Network)
	if errors.Is(err, sql.ErrNoRows) {
		return h, false, nil
	}
	if err != nil {
		return h, false, s.failed("find who holds a sandbox", err)
	}
	return h, true, nil
}

// Take implements replicas.Store.
func (s *Store) Take(ctx context.Context, h replicas.Held, from string) (taken bool, err error) {
	err = s.write(ctx, "take a sandbox", func(tx *sql.Tx) error {
		var done sql.Result
		var err error
		if from == "" {
			done, err = tx.ExecContext(ctx, "INSERT INTO held (sandbox, project, replica, network) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING", h.Sandbox, h.Project, h.Replica, h.Network)
		} else {
			done, err = tx.ExecContext(ctx, "UPDATE held SET replica = $1 WHERE sandbox = $2 AND replica = $3", h.Replica, h.Sandbox, from)
		}
		if err != nil {
			return err
		}
		n, err := done.RowsAffected()
		taken = n == 1
		return err
	})
	return taken && err == nil, err
}

// KeepNetwork implements replicas.Store.
func (s *Store) KeepNetwork(ctx context.Context, sandbox, network string) error {
	return s.write(ctx, "keep what a sandbox may reach", func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "UPDATE held SET network = $1 WHERE sandbox = $2", network, sandbox)
		return err
	})
}

// Drop implements replicas.Store.
func (s *Store) Drop(ctx context.Context, sandbox, replica string) error {
	return s.write(ctx, "drop a sandbox", func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "DELETE FROM held WHERE sandbox = $1 AND replica = $2", sandbox, replica)
		return err
	})
}
