package agenthost

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/backend"
)

func TestLogSweep(t *testing.T) {
	var text strings.Builder
	log := slog.New(slog.NewTextHandler(&text, nil))
	found := []backend.Leftover{{Kind: "volume", Name: "kept", Reason: "in use"}, {Kind: "sandbox", Name: "removed", Removed: true}}
	LogSweep(nil, found, nil)
	LogSweep(log, found, errors.New("engine away"))
	got := text.String()
	if !strings.Contains(got, "engine away") || !strings.Contains(got, `name=kept error="in use"`) || strings.Contains(got, "name=removed") {
		t.Errorf("logged %q; want the error and what was not removed", got)
	}
}
