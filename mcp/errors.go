package mcp

import (
	"context"
	"errors"
	"os"
	"strings"
)

var (
	errClosing     = errors.New("the server is closing")
	errNoSession   = errors.New("there is no such session: it was never created, was closed, or its time was over; create_session opens another")
	errNoLibraries = errors.New("libraries cannot be installed: the operator has switched that off; use what is preinstalled (get_language_details tells)")
)

// message is what a client gets of an error: nothing that names this machine's directories.
// The log gets all of it.
func (s *Server) message(err error) string {
	if errors.Is(err, context.Canceled) {
		return "the call was cancelled, and what it ran was killed"
	}
	s.cfg.Log.Warn("a call failed", "error", err)
	text := err.Error()
	for _, dir := range s.private {
		text = strings.ReplaceAll(text, dir, "…")
	}
	return line(text)
}

// privateFolders are those whose names say who runs the server.
func privateFolders() []string {
	var dirs []string
	for _, find := range []func() (string, error){os.UserCacheDir, os.UserConfigDir, os.UserHomeDir, os.Getwd} {
		if dir, err := find(); err == nil && len(dir) > 1 {
			dirs = append(dirs, dir)
		}
	}
	return append(dirs, strings.TrimSuffix(os.TempDir(), "/"))
}
