package store

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"time"

	"github.com/llmsandbox/llmsandbox/httpapi/metering"
)

// usageAge is for how long it is kept what projects have used, and of a sandbox whose end was not seen, up to where it was counted.
const usageAge = 400 * 24 * time.Hour

// AddUsage adds to what projects have used in hours, and replaces up to where sandboxes were counted. What is older than 400 days is removed.
func (s *Store) AddUsage(ctx context.Context, hours []metering.Hour, sandboxes []metering.Counted) error {
	const add = `INSERT INTO usage (project, hour, cpu, sent, received, runs, lived) VALUES ($1, $2, $3, $4, $5, $6, $7)
		ON CONFLICT (project, hour) DO UPDATE SET cpu = usage.cpu + excluded.cpu, sent = usage.sent + excluded.sent, received = usage.received + excluded.received,
			runs = usage.runs + excluded.runs, lived = usage.lived + excluded.lived`
	const put = `INSERT INTO counted (project, sandbox, at, cpu, sent, received) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (project, sandbox) DO UPDATE SET at = excluded.at, cpu = excluded.cpu, sent = excluded.sent, received = excluded.received
			WHERE counted.at <= excluded.at` // else another server has counted it since
	return s.write(ctx, "keep what projects use", func(tx *sql.Tx) error {
		for _, h := range hours {
			if _, err := tx.ExecContext(ctx, add, h.Project, h.Begins.Unix(), h.CPU.Microseconds(), h.Sent, h.Received, h.Runs, h.Lived.Microseconds()); err != nil {
				return err
			}
		}
		for _, c := range sandboxes {
			var err error
			if c.Ended {
				_, err = tx.ExecContext(ctx, "DELETE FROM counted WHERE project = $1 AND sandbox = $2", c.Project, c.Sandbox)
			} else {
				_, err = tx.ExecContext(ctx, put, c.Project, c.Sandbox, micros(c.At), c.CPU.Microseconds(), c.Sent, c.Received)
			}
			if err != nil {
				return err
			}
		}
		oldest := s.now().Add(-usageAge)
		_, err := tx.ExecContext(ctx, "DELETE FROM usage WHERE hour < $1", oldest.Unix())
		if err == nil {
			_, err = tx.ExecContext(ctx, "DELETE FROM counted WHERE at < $1", micros(oldest))
		}
		return err
	})
}

// Counted returns up to where a sandbox was counted. It fails with fs.ErrNotExist.
func (s *Store) Counted(ctx context.Context, project, sandbox string) (metering.Counted, error) {
	c := metering.Counted{Project: project, Sandbox: sandbox}
	var at, cpu int64
	const find = "SELECT at, cpu, sent, received FROM counted WHERE project = $1 AND sandbox = $2"
	found, err := s.one(ctx, "read up to where a sandbox was counted", find, []any{project, sandbox}, &at, &cpu, &c.Sent, &c.Received)
	if err == nil && !found {
		err = fmt.Errorf("up to where sandbox %.80q was counted: %w", sandbox, fs.ErrNotExist)
	}
	c.At, c.CPU = fromMicros(at), time.Duration(cpu)*time.Microsecond
	return c, err
}

// Usage returns what a project has used in hours that begin at from or later and before to, in their order.
func (s *Store) Usage(ctx context.Context, project string, from, to time.Time) (hours []metering.Hour, err error) {
	err = s.each(ctx, "read what a project has used", func(rows *sql.Rows) error {
		h := metering.Hour{Project: project}
		var begins, cpu, lived int64
		err := rows.Scan(&begins, &cpu, &h.Sent, &h.Received, &h.Runs, &lived)
		h.Begins, h.CPU, h.Lived = time.Unix(begins, 0).UTC(), time.Duration(cpu)*time.Microsecond, time.Duration(lived)*time.Microsecond
		hours = append(hours, h)
		return err
	}, "SELECT hour, cpu, sent, received, runs, lived FROM usage WHERE project = $1 AND hour >= $2 AND hour < $3 ORDER BY hour", project, from.Unix(), to.Unix())
	if err != nil {
		return nil, err
	}
	return hours, nil
}
