package store

import (
	"context"
	"database/sql"
)

// Beat says that a server is at a URL and lives, and calls each for all that there are, in the order of their ids, with how often they have said so.
func (s *Store) Beat(ctx context.Context, id, url string, each func(id, url string, beats int64)) error {
	const beat = "INSERT INTO replicas (id, url, beats) VALUES ($1, $2, 1) ON CONFLICT (id) DO UPDATE SET url = excluded.url, beats = replicas.beats + 1"
	if _, err := s.exec(ctx, "say that this server lives", beat, id, url); err != nil {
		return err
	}
	return s.each(ctx, "list the servers", func(rows *sql.Rows) error {
		var beats int64
		err := rows.Scan(&id, &url, &beats)
		if err == nil {
			each(id, url, beats)
		}
		return err
	}, "SELECT id, url, beats FROM replicas ORDER BY id")
}

// Leave drops a server that has not beaten more often than that; negative: however often it has.
func (s *Store) Leave(ctx context.Context, id string, beats int64) error {
	_, err := s.exec(ctx, "drop a server", "DELETE FROM replicas WHERE id = $1 AND ($2 < 0 OR beats <= $2)", id, beats)
	return err
}

// Held calls each for the sandboxes that a server holds, and for those whose holder is no server that there is, in the order of their ids.
func (s *Store) Held(ctx context.Context, id string, each func(sandbox, project, holder, network string)) error {
	return s.each(ctx, "list what a server holds", func(rows *sql.Rows) error {
		var sandbox, project, holder, network string
		err := rows.Scan(&sandbox, &project, &holder, &network)
		if err == nil {
			each(sandbox, project, holder, network)
		}
		return err
	}, "SELECT sandbox, project, replica, network FROM held WHERE replica = $1 OR replica NOT IN (SELECT id FROM replicas) ORDER BY sandbox", id)
}

// Holder returns which server holds a sandbox, and what that can reach; empty: none does.
func (s *Store) Holder(ctx context.Context, sandbox string) (holder, network string, err error) {
	_, err = s.one(ctx, "find who holds a sandbox", "SELECT replica, network FROM held WHERE sandbox = $1", []any{sandbox}, &holder, &network)
	return holder, network, err
}

// Take has a server hold a sandbox that the server from has held, and reports whether that still did. Where from is empty, none may have held it, and the
// project and the network are kept.
func (s *Store) Take(ctx context.Context, sandbox, project, network, holder, from string) (taken bool, err error) {
	statement, args := "UPDATE held SET replica = $1 WHERE sandbox = $2 AND replica = $3", []any{holder, sandbox, from}
	if from == "" {
		statement, args = "INSERT INTO held (sandbox, project, replica, network) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING", []any{sandbox, project, holder, network}
	}
	changed, err := s.exec(ctx, "take a sandbox", statement, args...)
	return changed == 1 && err == nil, err
}

// KeepNetwork keeps what a sandbox can reach, for who takes it.
func (s *Store) KeepNetwork(ctx context.Context, sandbox, network string) error {
	_, err := s.exec(ctx, "keep what a sandbox can reach", "UPDATE held SET network = $1 WHERE sandbox = $2", network, sandbox)
	return err
}

// Drop forgets a sandbox that has ended, if that server holds it.
func (s *Store) Drop(ctx context.Context, sandbox, holder string) error {
	_, err := s.exec(ctx, "drop a sandbox", "DELETE FROM held WHERE sandbox = $1 AND replica = $2", sandbox, holder)
	return err
}
