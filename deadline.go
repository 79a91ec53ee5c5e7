package llmsandbox

import (
	"context"
	"fmt"
	"time"
)

// SetDeadline has the sandbox end at that time, whatever runs in it, in place of the
// deadline it had; the zero time is never. Any handle may do that, and [List] shows it.
// With an error the deadline may be either.
func (s *Sandbox) SetDeadline(ctx context.Context, at time.Time) error {
	if err := s.link.Alive(); err != nil {
		return err
	}
	if err := s.machine.SetDeadline(ctx, at); err != nil {
		return fmt.Errorf("sandbox %s: set its deadline: %w", s.ID(), err)
	}
	return nil
}

// Deadline is when the sandbox ends, and whether it does: what it was opened or attached to
// with, or this handle's last SetDeadline. [List] tells what other handles have set.
func (s *Sandbox) Deadline() (at time.Time, set bool) {
	at = s.machine.Info().Deadline
	return at, !at.IsZero()
}
