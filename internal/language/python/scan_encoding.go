package python

import (
	"strconv"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

// cookie looks for the comment that names another encoding of the code, which could make
// code of what looks like a comment.
func (l *lexer) cookie() {
	rest := l.src[l.pos:]
	for n := 0; n < 2; n++ {
		l.facts.Step()
		line, after, _ := strings.Cut(rest, "\n")
		if before, _, cr := strings.Cut(line, "\r"); cr && strings.TrimRight(line, "\r") != before {
			line, after = before, rest[len(before)+1:]
		}
		trimmed := strings.TrimLeft(line, " \t\f")
		if !strings.HasPrefix(trimmed, "#") {
			if strings.TrimSpace(trimmed) != "" {
				return
			}
		} else if name, ok := encoding(trimmed); ok && !plain(name) {
			at := strings.Index(l.src, trimmed)
			l.facts.Trouble("it names an encoding that is not read: " + strconv.Quote(name))
			l.facts.Compute(language.Span{Start: at, End: at + len(trimmed)}, language.ComputedCode)
			return
		}
		rest = after
	}
}

// encoding is what follows "coding:" or "coding=" in a comment.
func encoding(comment string) (string, bool) {
	for {
		_, after, ok := strings.Cut(comment, "coding")
		if !ok {
			return "", false
		}
		comment = after
		if after == "" || after[0] != ':' && after[0] != '=' {
			continue
		}
		name := strings.TrimLeft(after[1:], " \t")
		end := strings.IndexFunc(name, func(r rune) bool {
			return r != '-' && r != '_' && r != '.' && (r < '0' || r > '9') && (r|0x20 < 'a' || r|0x20 > 'z')
		})
		if end >= 0 {
			name = name[:end]
		}
		if name != "" {
			return name, true
		}
	}
}

// plain tells of an encoding that ASCII is ASCII in.
func plain(name string) bool {
	name = strings.NewReplacer("_", "-", ".", "-").Replace(strings.ToLower(name))
	for _, p := range []string{"utf-8", "latin-1", "iso-8859-", "iso-latin-1", "iso8859-", "windows-125", "cp125", "koi8-"} {
		if name == strings.TrimSuffix(p, "-") || strings.HasPrefix(name, p) {
			return true
		}
	}
	return name == "utf8" || name == "ascii" || name == "us-ascii" || name == "latin1" || name == "l1"
}
