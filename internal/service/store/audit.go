package store

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
)

// An Entry is what was done, by which key and with what outcome. Texts are cut at 4 KiB, and
// what is NUL or no UTF-8 in them becomes a question mark.
type Entry struct {
	Number    int64     `json:"number"` // later entries have larger ones; Audit sets it
	At        time.Time `json:"at"`     // in UTC, to the microsecond; zero: when Audit is called
	KeyID     string    `json:"key_id,omitempty"`
	KeyName   string    `json:"key_name,omitempty"`
	ProjectID string    `json:"project_id,omitempty"`
	Action    string    `json:"action"`
	Sandbox   string    `json:"sandbox,omitempty"`
	Outcome   string    `json:"outcome"`
	Detail    string    `json:"detail,omitempty"`
	RequestID string    `json:"request_id,omitempty"`
}

// maxText bounds each text of an entry, in bytes: clients choose some of them.
const maxText = 4 << 10

// clean returns a text that both databases keep: PostgreSQL refuses others, and an entry must not be lost
// for what a client puts into it. What is replaced does not become longer.
func clean(text string) string {
	text = strings.ToValidUTF8(text[:min(len(text), maxText)], "?")
	return strings.ReplaceAll(text, "\x00", "?")
}

// Audit appends entries to the log, in order: all of them, or none if it fails.
func (s *Store) Audit(ctx context.Context, entries ...Entry) error {
	if len(entries) == 0 {
		return nil
	}
	const insert = `INSERT INTO audit (at, key_id, key_name, project, action, sandbox, outcome, detail, request_id)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`
	return s.write(ctx, "write to the audit log", func(tx *sql.Tx) error {
		if err := s.prune(ctx, tx); err != nil {
			return err
		}
		for _, e := range entries {
			if e.At.IsZero() {
				e.At = s.now()
			}
			_, err := tx.ExecContext(ctx, insert, micros(e.At), clean(e.KeyID), clean(e.KeyName), clean(e.ProjectID), clean(e.Action), clean(e.Sandbox),
				clean(e.Outcome), clean(e.Detail), clean(e.RequestID))
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

// A Filter selects entries of the log. What is empty or zero selects all.
type Filter struct {
	ProjectID, Action, Sandbox, Outcome string
	Key                                 string    // the id or name of a key
	Since, Until                        time.Time // from Since on, and before Until
	Before                              int64     // only entries with a smaller number, such as those after the last of a page
	Limit                               int       // of entries; zero: 100; at most MaxEntries
}

// MaxEntries is how many entries a call returns at most.
const MaxEntries = 1000

const defaultEntries = 100

// conditions returns the filter in SQL.
func (f Filter) conditions() (where string, args []any) {
	var all []string
	add := func(condition string, arg any) {
		args = append(args, arg)
		all = append(all, strings.ReplaceAll(condition, "$n", fmt.Sprint("$", len(args))))
	}
	for _, c := range []struct{ condition, text string }{
		{"project = $n", f.ProjectID}, {"action = $n", f.Action}, {"sandbox = $n", f.Sandbox}, {"outcome = $n", f.Outcome}, {"(key_id = $n OR key_name = $n)", f.Key},
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

// Entries returns entries of the log, the newest first. It fails with backend.ErrInvalid for a limit or number
// that makes no sense.
func (s *Store) Entries(ctx context.Context, f Filter) (entries []Entry, err error) {
	switch {
	case f.Limit < 0 || f.Limit > MaxEntries:
		return nil, fmt.Errorf("limit %d of entries: %w: use at most %d", f.Limit, backend.ErrInvalid, MaxEntries)
	case f.Before < 0:
		return nil, fmt.Errorf("number %d of an entry: %w: use one that an entry has", f.Before, backend.ErrInvalid)
	case f.Limit == 0:
		f.Limit = defaultEntries
	}
	where, args := f.conditions()
	args = append(args, f.Limit)
	query := fmt.Sprintf(`SELECT number, at, key_id, key_name, project, action, sandbox, outcome, detail, request_id
		FROM audit %s ORDER BY number DESC LIMIT $%d`, where, len(args))
	err = s.each(ctx, "read the audit log", func(rows *sql.Rows) error {
		var e Entry
		var at int64
		err := rows.Scan(&e.Number, &at, &e.KeyID, &e.KeyName, &e.ProjectID, &e.Action, &e.Sandbox, &e.Outcome, &e.Detail, &e.RequestID)
		e.At = fromMicros(at)
		entries = append(entries, e)
		return err
	}, query, args...)
	if err != nil {
		return nil, err
	}
	return entries, nil
}
