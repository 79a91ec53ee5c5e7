package store

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/httpapi/database"
)

// maxText bounds each text of an event, in bytes: clients choose some of them. Texts are cut there, and what is NUL or no UTF-8 in them becomes a question mark.
const maxText = 4 << 10

// clean returns a text that both databases keep: PostgreSQL refuses others, and an entry must not be lost
// for what a client puts into it. What is replaced does not become longer.
func clean(text string) string {
	text = strings.ToValidUTF8(text[:min(len(text), maxText)], "?")
	return strings.ReplaceAll(text, "\x00", "?")
}

// Audit appends events to the log, in order: all of them, or none if it fails. It sets their numbers, and a zero time to the time when it is called.
func (s *Store) Audit(ctx context.Context, events ...database.AuditEvent) error {
	if len(events) == 0 {
		return nil
	}
	const insert = `INSERT INTO audit (at, key_id, key_name, project, action, sandbox, outcome, detail, request_id)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, '')`
	return s.write(ctx, "write to the audit log", func(tx *sql.Tx) error {
		if err := s.prune(ctx, tx); err != nil {
			return err
		}
		for _, e := range events {
			if e.Time.IsZero() {
				e.Time = s.now()
			}
			_, err := tx.ExecContext(ctx, insert, micros(e.Time), clean(e.KeyID), clean(e.KeyName), clean(e.ProjectID), clean(e.Operation), clean(e.Sandbox),
				clean(e.Outcome), clean(e.Detail))
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// pruneTime is how often entries that are too old are removed.
const pruneTime = time.Hour

// KeepAudit has Audit remove what is older than age, every hour. It is called before the store is used.
func (s *Store) KeepAudit(age time.Duration) { s.keepAudit = age }

func (s *Store) prune(ctx context.Context, tx *sql.Tx) error {
	now, last := s.now(), s.pruned.Load()
	if s.keepAudit == 0 || now.Sub(fromMicros(last)) < pruneTime || !s.pruned.CompareAndSwap(last, micros(now)) {
		return nil
	}
	_, err := tx.ExecContext(ctx, "DELETE FROM audit WHERE at < $1", micros(now.Add(-s.keepAudit)))
	return err
}

// MaxEntries is how many entries a call returns at most.
const MaxEntries = 1000

const defaultEntries = 100

// conditions returns the query in SQL.
func conditions(f database.AuditQuery) (where string, args []any) {
	var all []string
	add := func(condition string, arg any) {
		args = append(args, arg)
		all = append(all, strings.ReplaceAll(condition, "$n", fmt.Sprint("$", len(args))))
	}
	for _, c := range []struct{ condition, text string }{
		{"project = $n", f.ProjectID}, {"action = $n", f.Operation}, {"sandbox = $n", f.Sandbox}, {"outcome = $n", f.Outcome}, {"(key_id = $n OR key_name = $n)", f.Key},
	} {
		if c.text != "" {
			add(c.condition, clean(c.text))
		}
	}
	if !f.Since.IsZero() {
		add("at >= $n", micros(f.Since))
	}
	if !f.Until.IsZero() {
		add("at < $n", micros(f.Until))
	}
	if f.Before != 0 {
		add("number < $n", f.Before)
	}
	if len(all) == 0 {
		return "", nil
	}
	return "WHERE " + strings.Join(all, " AND "), args
}

// Entries returns events of the log, the newest first, without Status; a Limit of zero is 100, and none is larger than MaxEntries. It fails with backend.ErrInvalid for a limit or number
// that makes no sense.
func (s *Store) Entries(ctx context.Context, f database.AuditQuery) (entries []database.AuditEvent, err error) {
	switch {
	case f.Limit < 0 || f.Limit > MaxEntries:
		return nil, fmt.Errorf("limit %d of entries: %w: use at most %d", f.Limit, backend.ErrInvalid, MaxEntries)
	case f.Before < 0:
		return nil, fmt.Errorf("number %d of an entry: %w: use one that an entry has", f.Before, backend.ErrInvalid)
	case f.Limit == 0:
		f.Limit = defaultEntries
	}
	where, args := conditions(f)
	args = append(args, f.Limit)
	query := fmt.Sprintf(`SELECT number, at, key_id, key_name, project, action, sandbox, outcome, detail
		FROM audit %s ORDER BY number DESC LIMIT $%d`, where, len(args))
	err = s.each(ctx, "read the audit log", func(rows *sql.Rows) error {
		var e database.AuditEvent
		var at int64
		err := rows.Scan(&e.Number, &at, &e.KeyID, &e.KeyName, &e.ProjectID, &e.Operation, &e.Sandbox, &e.Outcome, &e.Detail)
		e.Time = fromMicros(at)
		entries = append(entries, e)
		return err
	}, query, args...)
	if err != nil {
		return nil, err
	}
	return entries, nil
}
