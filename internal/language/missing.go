package language

import (
	"path"
	"strings"
)

// Missing is how programs of a language report that a module is missing, and which library has
// it. Values are immutable.
type Missing struct {
	// Messages are what stands before and behind the module's name in a line; nothing behind
	// it means that the line ends with it.
	Messages [][2]string
	// Libraries are the libraries of modules with another name, also of those below them.
	// Empty text: no library has it.
	Libraries map[string]string
	// Library returns the library of any other module; nil: it is not known.
	Library func(module string) string
	// Files tells that a name that is no library's may be that of a file of the program.
	Files bool
}

// Bounds on what is read of a program's text and of each of its lines, and taken from it.
const (
	maxMissingText = 32 << 10
	maxMissingLine = 1 << 10
	maxMissingName = 64
)

// FindMissing returns the library that the last such message of a program is about, or the base name
// of the file. The text is hostile: what is returned has no other characters than an
// identifier, a path or a version has, and is short.
func (l *Language) FindMissing(text string) (library, file string) {
	if l.Missing == nil {
		return "", ""
	}
	lines := strings.Split(text[max(0, len(text)-maxMissingText):], "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		for _, m := range l.Missing.Messages {
			if name := Between(lines[i], m[0], m[1]); plainName(name) {
				return l.missing(name)
			}
		}
	}
	return "", ""
}

// missing returns what has a module.
func (l *Language) missing(module string) (library, file string) {
	m := l.Missing
	if module[0] == '.' || module[0] == '/' {
		return "", fileName(module) // the program's own
	}
	known := false
	for part := module; !known; {
		if library, known = m.Libraries[part]; known {
			break
		}
		cut := strings.LastIndex(part, l.ModuleSeparator)
		if cut < 0 {
			break
		}
		part = part[:cut]
	}
	if !known && m.Library != nil {
		library = m.Library(module)
	}
	if library != "" && l.Libraries != nil {
		if _, err := l.Libraries.Check(library); err != nil {
			library = ""
		}
	}
	if library == "" && !known && m.Files {
		file = fileName(module)
	}
	return library, file
}

// fileName returns the base name of a path, unless it is hidden or could be taken for a flag.
func fileName(of string) string {
	name := path.Base(of)
	if strings.ContainsRune("-+./", rune(name[0])) {
		return ""
	}
	return name
}

// Between returns what stands in a line between two texts, the last where there are several;
// no text behind it means the end of the line. It reads the line's beginning only, so that its time is bounded.
func Between(line, before, after string) string {
	line = line[:min(len(line), maxMissingLine)]
	for rest := line; ; {
		at := strings.LastIndex(rest, before)
		if at < 0 {
			return ""
		}
		name := line[at+len(before):]
		if after == "" {
			return strings.TrimSpace(name)
		}
		if end := strings.Index(name, after); end >= 0 {
			return name[:end]
		}
		rest = rest[:at]
	}
}

// plainName reports whether a name has nothing in it that could be more than a name.
func plainName(name string) bool {
	if name == "" || len(name) > maxMissingName {
		return false
	}
	for i := range len(name) {
		switch c := name[i]; {
		case 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_':
		case c == '.' || c == '/' || i == 0 && c == '@':
		case i > 0 && (c == '-' || c == '+'):
		default:
			return false
		}
	}
	return true
}
