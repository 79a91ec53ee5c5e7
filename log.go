package llmsandbox

import (
	"errors"
	"io/fs"
	"log/slog"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// warn logs an error that no caller gets: nothing waits for what failed, or it was made good.
// That something has ended or is gone already is none. Neither code nor output is logged.
func warn(log *slog.Logger, what string, err error, args ...any) {
	if log == nil || err == nil || errors.Is(err, ErrClosed) || errors.Is(err, fs.ErrNotExist) || answered(err) == agentproto.CodeLost {
		return
	}
	log.Warn(what, append(args, "error", err)...)
}

// logTo has the handle log to l; nil is nowhere.
func (s *Sandbox) logTo(l *slog.Logger) {
	if l != nil {
		s.log = l.With("sandbox", s.ID())
		s.link.log = s.log
	}
}
