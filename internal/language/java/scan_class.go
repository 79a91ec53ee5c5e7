package java

import (
	_ "embed"
	"sort"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Each line is a package of the JDK and its public classes.
//
//go:embed scan_classes.txt
var classList string

// known are the packages of the JDK's that a class is in, by its name.
var known = sync.OnceValue(func() map[string][]string {
	all := map[string][]string{}
	for line := range strings.Lines(classList) {
		words := strings.Fields(line)
		for _, class := range words[1:] {
			all[class] = append(all[class], words[0])
		}
	}
	return all
})

// listed are the packages whose classes are known.
var listed = sync.OnceValue(func() map[string]bool {
	all := map[string]bool{}
	for line := range strings.Lines(classList) {
		pkg, _, _ := strings.Cut(line, " ")
		all[pkg] = true
	}
	return all
})

// implied are the packages that a cell, and a program without a class, have imported.
func implied(pkg string) bool {
	switch pkg {
	case "java.io", "java.math", "java.net", "java.nio.file", "java.util", "java.util.concurrent", "java.util.function", "java.util.prefs", "java.util.regex", "java.util.stream":
		return true
	}
	return false
}

func capital(name string) bool {
	r, _ := utf8.DecodeRuneInString(name)
	return unicode.IsUpper(r)
}

// maxScopes is how many places before its use are asked whether a class is the file's own. Where
// that are too few, it is taken for another one.
const maxScopes = 64

// classOf are the whole names that the name of a class, or of what is in one, at token at
// may have; none for the file's own.
func (s *reader) classOf(written string, at int) []string {
	root, rest, more := strings.Cut(written, ".")
	if more {
		rest = "." + rest
	}
	if !capital(root) && s.imported[root] == "" {
		if qualified(written) != "" {
			return []string{written}
		}
		return nil
	}
	if s.top[root] {
		return nil
	}
	scopes := s.own[root]
	last := sort.Search(len(scopes), func(n int) bool { return scopes[n][0] > at })
	for n := last - 1; n >= max(0, last-maxScopes); n-- {
		s.Step()
		if at <= scopes[n][1] {
			return nil
		}
	}
	if class, ok := s.imported[root]; ok {
		return []string{class + rest}
	}
	packages := known()[root]
	for _, pkg := range packages {
		if pkg == "java.lang" || s.packages[pkg] {
			return []string{pkg + "." + root + rest}
		}
	}
	var list []string
	for _, pkg := range s.others {
		list = append(list, pkg+"."+root+rest)
	}
	for _, pkg := range packages {
		if list == nil && implied(pkg) {
			list = append(list, pkg+"."+root+rest)
		}
	}
	return list
}

// qualified is the class of a name that begins with its package, or empty.
func qualified(name string) string {
	root, _, _ := strings.Cut(name, ".")
	switch root {
	case "java", "javax", "jdk", "sun", "com", "org", "net", "io", "edu", "dev", "jakarta", "kotlin", "groovy", "scala", "akka", "reactor":
	default:
		return ""
	}
	for at := 0; ; {
		n := strings.IndexByte(name[at:], '.')
		word := name[at:]
		if n >= 0 {
			word = name[at : at+n]
		}
		if at > 0 && capital(word) {
			return name[:at+len(word)]
		}
		if n < 0 {
			return ""
		}
		at += n + 1
	}
}
