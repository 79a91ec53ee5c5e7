package store

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/llmsandbox/llmsandbox/httpapi/database"
)

// Bounds of sessions.
const (
	sessionIdle       = 4 * time.Hour
	sessionUsed       = time.Minute // for which a use that is kept stands
	sessionsOfKey     = 16
	sessionsOfProject = 1000
)

// AddSession keeps a session, and drops those that have ended or were not used for four hours, and the oldest of more than 16 of the same KeyID or 1000 of the project.
func (s *Store) AddSession(ctx context.Context, id string, added database.Session) error {
	const old = "DELETE FROM sessions WHERE ends <= $1 OR used <= $2"
	const add = "INSERT INTO sessions (id, project, key_id, name, scopes, issuer, begun, used, ends) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)"
	const many = `DELETE FROM sessions WHERE id IN (
		SELECT id FROM (
			SELECT id, ROW_NUMBER() OVER (ORDER BY begun DESC, id) AS number, ROW_NUMBER() OVER (PARTITION BY key_id ORDER BY begun DESC, id) AS of_key FROM sessions WHERE project = $1
		) AS numbers WHERE number > $2 OR of_key > $3)`
	c, name, scopes := added.Caller, "", "" // those of a key are the key's
	if added.Issuer != "" {
		name, scopes = c.KeyName, strings.Join(c.Scopes, " ")
	}
	return s.write(ctx, "keep a session", func(tx *sql.Tx) error {
		now := s.now()
		if _, err := tx.ExecContext(ctx, old, micros(now), micros(now.Add(-sessionIdle))); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, add, id, c.Project, c.KeyID, name, scopes, added.Issuer, micros(added.Begun), micros(now), micros(added.End))
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, many, c.Project, sessionsOfProject, sessionsOfKey)
		return err
	})
}

// UseSession returns a session and keeps that it is used, once a minute. It fails with fs.ErrNotExist where there is none, it has ended or was not used for four
// hours, or its key has been revoked or has ended.
func (s *Store) UseSession(ctx context.Context, id string) (found database.Session, err error) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	const find = "SELECT project, key_id, name, scopes, issuer, begun, used, ends FROM sessions WHERE id = $1 AND ends > $2 AND used > $3"
	now := s.now()
	var list string
	var begun, used, ends int64
	ok, err := s.one(ctx, "look for a session", find, []any{id, micros(now), micros(now.Add(-sessionIdle))},
		&found.Caller.Project, &found.Caller.KeyID, &found.Caller.KeyName, &list, &found.Issuer, &begun, &used, &ends)
	none := fmt.Errorf("the session: %w", fs.ErrNotExist)
	switch {
	case err != nil:
		return database.Session{}, err
	case !ok:
		return database.Session{}, none
	}
	found.Caller.Scopes, found.Begun, found.End = strings.Fields(list), fromMicros(begun), fromMicros(ends)
	if found.Issuer == "" {
		keys, _, err := selected(ctx, s.db, "WHERE k.id = $1", found.Caller.KeyID)
		switch {
		case err != nil:
			return database.Session{}, s.failed("look for the key of a session", err)
		case len(keys) == 0 || !keys[0].Usable(now):
			return database.Session{}, none
		}
		found.Caller = keys[0].Caller()
	}
	if now.Sub(fromMicros(used)) >= sessionUsed {
		_, err = s.exec(ctx, "note the use of a session", "UPDATE sessions SET used = $1 WHERE id = $2 AND used < $1", micros(now), id)
	}
	return found, err
}

// EndAllSessions drops all sessions, and where secret says so, what SealingSecret returns: it makes another one then.
func (s *Store) EndAllSessions(ctx context.Context, secret bool) (ended int64, err error) {
	err = s.write(ctx, "end all sessions", func(tx *sql.Tx) error {
		var err error
		if ended, err = affected(ctx, tx, "DELETE FROM sessions"); err == nil && secret {
			_, err = tx.ExecContext(ctx, "DELETE FROM sealing")
		}
		return err
	})
	return ended, err
}

// EndSessions drops sessions, if they are there.
func (s *Store) EndSessions(ctx context.Context, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	names, args := make([]string, len(ids)), make([]any, len(ids))
	for i, id := range ids {
		names[i], args[i] = fmt.Sprint("$", i+1), id
	}
	_, err := s.exec(ctx, "end sessions", "DELETE FROM sessions WHERE id IN ("+strings.Join(names, ", ")+")", args...)
	return err
}
