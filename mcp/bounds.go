package mcp

import (
	"fmt"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
)

// Bounds of arguments: texts in characters, lists in entries, times in seconds.
const (
	maxCode        = 1 << 20
	maxName        = 256
	maxPath        = 4096
	maxLibraries   = 64
	maxSeconds     = 24 * 60 * 60
	defaultSeconds = 30
)

// properties are those of an object in a schema.
type properties = map[string]*jsonschema.Schema

func atMost(n int) *int { return &n }

func atLeast(n float64) *float64 { return &n }

// boundCode bounds what tools that run code have in common. A time that is longer than the
// operator allows is no error: it is cut, and the result says so.
func (s *Server) boundCode(p properties) {
	p["code"].MaxLength = atMost(maxCode)
	p["timeout"].Minimum = atLeast(1)
	p["timeout"].Default = fmt.Append(nil, min(defaultSeconds, int(s.cfg.Sandbox.Limits.Timeout/time.Second)))
}

func (s *Server) boundLanguage(p properties) {
	p["language"].MaxLength = atMost(maxName)
	p["language"].Default = []byte(jsonText(s.catalog.usual()))
	boundLibraries(p)
}

func boundLibraries(p properties) {
	p["libraries"].MaxItems = atMost(maxLibraries)
	p["libraries"].Items.MaxLength = atMost(maxName)
}

func boundPath(p properties) {
	p["session_id"].MaxLength = atMost(maxName)
	p["path"].MaxLength = atMost(maxPath)
}

// timeout is what a run gets of the seconds that were asked for, and a note where that is less.
func (s *Server) timeout(seconds int) (time.Duration, []string) {
	return clamp("timeout", seconds, s.cfg.Sandbox.Limits.Timeout)
}

func clamp(what string, seconds int, most time.Duration) (time.Duration, []string) {
	if asked := time.Duration(min(seconds, maxSeconds)) * time.Second; asked <= most {
		return asked, nil
	}
	return most, []string{fmt.Sprintf("%s: %s asked for, and the operator allows %s", what, count(seconds, "second"), span(most))}
}

// mayInstall fails where the operator has switched libraries off.
func (s *Server) mayInstall(libraries []string) error {
	if len(libraries) > 0 && s.cfg.NoLibraries {
		return errNoLibraries
	}
	return nil
}
