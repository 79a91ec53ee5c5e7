package collect

import (
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxName is the longest name of an artifact, in bytes.
const maxName = 200

// line makes a text fit for one line of a title or label: no control characters, bounded.
func line(s string) string {
	if len(s) > 8*maxText {
		s = s[:8*maxText]
	}
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	if utf8.RuneCountInString(s) > maxText {
		s = string([]rune(s)[:maxText-1]) + "…"
	}
	return strings.TrimSpace(s)
}

// fileName makes a base name out of any path that every file system takes and that is
// no option, hidden or special. What is left of nothing is "artifact".
func fileName(p string) string {
	if len(p) > 4096 {
		p = p[len(p)-4096:]
	}
	p = strings.ToValidUTF8(p, "_")
	if i := strings.LastIndexAny(p, `/\`); i >= 0 {
		p = p[i+1:]
	}
	p = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || strings.ContainsRune(`<>:"|?*`, r) {
			return '_'
		}
		return r
	}, p)
	p = strings.TrimRight(strings.TrimLeftFunc(p, hides), ". ")
	ext := path.Ext(p)
	if len(ext) > 20 {
		ext = ""
	}
	if len(p) > maxName {
		// Where it is cut there may be what no name ends with.
		p = strings.TrimRight(strings.ToValidUTF8(p[:maxName-len(ext)], "")+ext, ". ")
	}
	if p == "" || reserved(p) {
		return "artifact" + ext
	}
	return p
}

// hides reports what makes a name hidden or an option where it begins with it, and of what
// cannot be seen and may be left out by a program that takes the name.
func hides(r rune) bool {
	return r == '.' || r == '-' || unicode.IsSpace(r) || unicode.Is(unicode.Cf, r)
}

// reserved reports whether a name is a device of Windows.
func reserved(name string) bool {
	stem, _, _ := strings.Cut(strings.ToLower(name), ".")
	stem = strings.TrimRight(stem, " ")
	switch stem {
	case "con", "prn", "aux", "nul", "conin$", "conout$":
		return true
	}
	port := strings.HasPrefix(stem, "com") || strings.HasPrefix(stem, "lpt")
	return port && utf8.RuneCountInString(stem) == 4 && strings.Contains("0123456789¹²³", stem[3:])
}
