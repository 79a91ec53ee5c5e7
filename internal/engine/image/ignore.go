package image

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

const maxPatterns = 10_000

// An ignore is a .dockerignore: of the patterns that fit a name or a directory above it, the
// last decides.
type ignore struct {
	patterns   []pattern
	exceptions bool // some pattern brings names back
}

type pattern struct {
	re   *regexp.Regexp
	back bool
}

func parseIgnore(text []byte) (ignore, error) {
	var ig ignore
	for i, line := range strings.Split(strings.TrimPrefix(string(text), "\ufeff"), "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		line = strings.TrimSpace(line)
		var p pattern
		if line, p.back = strings.CutPrefix(line, "!"); p.back {
			line = strings.TrimSpace(line)
			if line == "" {
				return ignore{}, fmt.Errorf("line %d: a pattern must follow the exclamation mark", i+1)
			}
		}
		if line == "" {
			continue
		}
		line = strings.TrimPrefix(path.Clean(line), "/")
		if line == "." || line == "" {
			continue
		}
		var err error
		if p.re, err = compileIgnore(line); err != nil {
			return ignore{}, fmt.Errorf("line %d: pattern %q is not valid: %w", i+1, line, err)
		}
		if len(ig.patterns) == maxPatterns {
			return ignore{}, fmt.Errorf("it has over %d patterns", maxPatterns)
		}
		ig.patterns = append(ig.patterns, p)
		ig.exceptions = ig.exceptions || p.back
	}
	return ig, nil
}

// excludes reports whether a name, with slashes, is left out.
func (ig ignore) excludes(name string) bool {
	out := false
	for _, p := range ig.patterns {
		if p.back == out && p.fits(name) {
			out = !p.back
		}
	}
	return out
}

// fits reports whether the pattern is the name's or that of a directory it is in.
func (p pattern) fits(name string) bool {
	for ; name != "."; name = path.Dir(name) {
		if p.re.MatchString(name) {
			return true
		}
	}
	return false
}

// compileIgnore translates a pattern: ** is any number of directories, * and ? stay within a
// name, [a-z] is a set and a backslash takes the next character as it is.
func compileIgnore(pat string) (*regexp.Regexp, error) {
	var re strings.Builder
	re.WriteString(`^`)
	for i := 0; i < len(pat); i++ {
		switch c := pat[i]; {
		case strings.HasPrefix(pat[i:], "**/"):
			re.WriteString(`(?:.*/)?`)
			i += 2
		case strings.HasPrefix(pat[i:], "**"):
			re.WriteString(`.*`)
			i++
		case c == '*':
			re.WriteString(`[^/]*`)
		case c == '?':
			re.WriteString(`[^/]`)
		case c == '[':
			end := strings.IndexByte(pat[i:], ']')
			if end < 2 {
				return nil, path.ErrBadPattern
			}
			re.WriteString(pat[i : i+end+1])
			i += end
		case c == '\\':
			if i++; i == len(pat) {
				return nil, path.ErrBadPattern
			}
			re.WriteString(regexp.QuoteMeta(string(pat[i])))
		default:
			re.WriteString(regexp.QuoteMeta(string(c)))
		}
	}
	re.WriteString(`$`)
	return regexp.Compile(`(?s)` + re.String())
}
