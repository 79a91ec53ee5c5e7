package agenthost

import (
	"log/slog"

	"github.com/llmsandbox/llmsandbox/backend"
)

// LogSweep logs what a sweep that no caller waits for could not remove. The next GC tries again.
func LogSweep(log *slog.Logger, found []backend.Leftover, err error) {
	if log == nil {
		return
	}
	if err != nil {
		log.Warn("leftovers of ended processes could not be looked for", "error", err)
	}
	for _, l := range found {
		if !l.Removed {
			log.Warn("a leftover of an ended process could not be removed", "kind", l.Kind, "name", l.Name, "error", l.Reason)
		}
	}
}
