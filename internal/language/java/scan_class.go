package java

import (
	_ "embed"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/llmsandbox/llmsandbox/internal/lex"
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
var implied = lex.Words(`java.io java.math java.net java.nio.file java.util java.util.concurrent java.util.function
	java.util.prefs java.util.regex java.util.stream`)

// domains are what the names of packages begin with.
var domains = lex.Words(`java javax jdk sun com org net io edu dev jakarta kotlin groovy scala akka reactor`)

func capital(name string) bool {
	r, _ := utf8.DecodeRuneInString(name)
	return unicode.IsUpper(r)
}

// classOf are the whole names that the name of a class, or of what is in one, at token at may have;
// none for the file's own.
func (r *reader) classOf(written string, at int) []string {
	root, rest, more := strings.Cut(written, ".")
	if more {
		rest = "." + rest
	}
	class, imported := r.imported[root]
	switch {
	case !capital(root) && !imported:
		if qualified(written) != "" {
			return []string{written}
		}
		return nil
	case r.isOwn(root, at):
		return nil
	case imported:
		return []string{class + rest}
	}
	packages := known()[root]
	for _, pkg := range packages {
		if pkg == "java.lang" || r.packages[pkg] {
			return []string{pkg + "." + root + rest}
		}
	}
	var list []string
	for _, pkg := range r.others {
		list = append(list, pkg+"."+root+rest)
	}
	for _, pkg := range packages {
		if list == nil && implied()[pkg] {
			list = append(list, pkg+"."+root+rest)
		}
	}
	return list
}

// isOwn tells whether a class that is named at token at is one of the file's own that is known there.
// Where that is too deep to be told it is taken for another one.
func (r *reader) isOwn(class string, at int) bool {
	return r.own.In(&r.Stream, at, class, nil)
}

// qualified is the class of a name that begins with its package, or empty.
func qualified(name string) string {
	root, rest, _ := strings.Cut(name, ".")
	if !domains()[root] {
		return ""
	}
	end := len(root)
	for word := range strings.SplitSeq(rest, ".") {
		if end += 1 + len(word); capital(word) {
			return name[:end]
		}
	}
	return ""
}
