package java

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// use adds what the token at i uses.
func (r *reader) use(i int) {
	t := &r.Tokens[i]
	switch {
	case t.Is(")"):
		r.grouped(i)
		return
	case t.Is(";"):
		r.assigned(i)
		return
	case t.Kind != lex.Name || i < r.done || r.Is(i-1, "::") || r.Is(i-1, "@") && t.Is("interface"):
		return
	case r.Is(i-1, "."):
		r.member(i)
		return
	case r.Is(i, "import"), r.Is(i, "package"), r.Is(i-1, "import"), r.Is(i-1, "package"),
		r.Is(i-2, "import") && (r.Is(i-1, "static") || r.Is(i-1, "module")):
		_, r.done = r.chain(i)
		return
	case t.Text == "native":
		if r.Kind(i+1) == lex.Name {
			r.Use(t.Span, "native", false)
		}
		return
	case t.Text == "var" && r.Kind(i+1) == lex.Name && r.Is(i+2, "="):
		r.pending = r.Tokens[i+1].Text
	}
	name, end := r.chain(i)
	r.done = end
	written, last, open := name, end-1, end
	switch {
	case r.Is(end, "::") && r.Kind(end+1) == lex.Name:
		if last, open = end+1, -1; !r.Is(last, "new") {
			name += "." + r.Tokens[last].Text
		}
	case r.Is(i-1, "new") && r.Is(end, "<"):
		open = r.closed(r.Tokens, end, ">")
	}
	span := language.Span{Start: t.Start, End: r.Tokens[last].End}
	found := r.resolve(name, i)
	for _, full := range found {
		r.Use(span, strings.TrimSuffix(full, ".class"), r.Is(open, "("))
	}
	r.bring(found, written, span)
	r.call(i, open, found)
}

// resolve are the whole names that a name at i may have: that of a class, or of a member of one, or
// of what a variable is.
func (r *reader) resolve(name string, i int) []string {
	found := r.classOf(name, i)
	root, rest, more := strings.Cut(name, ".")
	if more {
		for _, class := range r.variables[root] {
			found = append(found, class+"."+rest)
		}
	} else if r.Is(i+1, "(") && !r.Is(i-1, "new") && len(found) == 0 {
		if r.statics[root] != nil {
			return r.statics[root]
		}
		if !keywords()[root] {
			for _, class := range r.classes {
				found = append(found, class+"."+root)
			}
		}
	}
	return found
}

// keywords are those that a bracket may come behind.
var keywords = lex.Words(`if for while switch catch synchronized super this return try assert throw new do else case yield`)

// bring tells classes that are used without an import of their own.
func (r *reader) bring(found []string, written string, span language.Span) {
	root, _, _ := strings.Cut(written, ".")
	if len(found) == 0 || r.imported[root] != "" || !capital(root) && qualified(written) == "" {
		return
	}
	class := qualified(found[0])
	if class == "" {
		class = found[0]
	}
	if !r.brought[class] {
		r.brought[class] = true
		r.Import(span, class)
	}
}

// member adds a member of what a call returns.
func (r *reader) member(i int) {
	class, called := r.results[i-2], r.Is(i+1, "(")
	if !r.Is(i-2, ")") || class == "" {
		r.call(i, i+1, nil)
		return
	}
	name := class + "." + r.Tokens[i].Text
	r.Use(r.Tokens[i].Span, name, called)
	r.call(i, i+1, []string{name})
}

// grouped notes the class of what brackets are around: a call, or a cast.
func (r *reader) grouped(i int) {
	open := r.Partner[i]
	if open < 0 || r.Kind(open-1) == lex.Name || r.results[i] != "" {
		return
	}
	if r.Is(i-1, ")") {
		r.results[i], r.mirrored[i] = r.results[i-1], r.mirrored[i-1]
	}
	if r.Is(open+1, "(") && r.Partner[open+1] > 0 {
		if name, end := r.chain(open + 2); end == r.Partner[open+1] {
			for _, class := range r.classOf(name, open+2) {
				r.results[i] = class
			}
		}
	}
}

// assigned notes the class of a variable whose declaration ends at i.
func (r *reader) assigned(i int) {
	if class := r.results[i-1]; r.pending != "" && class != "" {
		r.Bind(r.variables, r.pending, class)
	}
	r.pending = ""
}

// call sees what the call at open, whose name begins at i, returns, and what it does by a name that it
// is given; found are its whole names, none where the class is not known.
func (r *reader) call(i, open int, found []string) {
	if !r.Is(open, "(") || r.Partner[open] < 0 {
		return
	}
	end := r.Partner[open]
	class, name := "", r.Tokens[open-1].Text
	if r.Is(i-1, "new") {
		if len(found) > 0 {
			r.results[end] = found[0]
		}
		return
	}
	if len(found) > 0 {
		last := strings.LastIndexByte(found[0], '.')
		class, name = found[0][:max(last, 0)], found[0][last+1:]
	}
	r.results[end] = returns[class+"."+name]
	switch {
	case class == "java.lang.ProcessBuilder" && name != "start" && name != "startPipeline":
		r.results[end] = class
	case name == "getClass":
		r.results[end] = "java.lang.Class"
	case name == "exec" && class != "java.lang.Runtime" && r.Is(open-2, "."):
		r.members = append(r.members, member{r.SpanOf(i, open), name, true})
	}
	r.reflection(open, class, name)
}

// returns are the classes of what members of classes return, where more is to be known of it.
var returns = map[string]string{
	"java.lang.Runtime.getRuntime":                          "java.lang.Runtime",
	"java.lang.Class.forName":                               "java.lang.Class",
	"java.lang.ClassLoader.loadClass":                       "java.lang.Class",
	"java.lang.Class.getClassLoader":                        "java.lang.ClassLoader",
	"java.lang.ClassLoader.getSystemClassLoader":            "java.lang.ClassLoader",
	"java.lang.ClassLoader.getPlatformClassLoader":          "java.lang.ClassLoader",
	"java.lang.Thread.getContextClassLoader":                "java.lang.ClassLoader",
	"java.lang.Class.getMethod":                             "java.lang.reflect.Method",
	"java.lang.Class.getDeclaredMethod":                     "java.lang.reflect.Method",
	"java.lang.Thread.currentThread":                        "java.lang.Thread",
	"java.lang.invoke.MethodHandles.lookup":                 "java.lang.invoke.MethodHandles.Lookup",
	"java.lang.invoke.MethodHandles.publicLookup":           "java.lang.invoke.MethodHandles.Lookup",
	"java.net.URL.openConnection":                           "java.net.URLConnection",
	"java.net.http.HttpClient.newHttpClient":                "java.net.http.HttpClient",
	"java.nio.file.Paths.get":                               "java.nio.file.Path",
	"java.nio.file.Path.of":                                 "java.nio.file.Path",
	"javax.script.ScriptEngineManager.getEngineByName":      "javax.script.ScriptEngine",
	"javax.script.ScriptEngineManager.getEngineByExtension": "javax.script.ScriptEngine",
}

// Methods that look for something by its name.
var (
	defineClasses = lex.Words(`defineClass defineHiddenClass defineAnonymousClass`)
	loadClasses   = lex.Words(`loadClass findClass findSystemClass`)
	findMembers   = lex.Words(`getMethod getDeclaredMethod getField getDeclaredField`)
	findHandles   = lex.Words(`findStatic findVirtual findSpecial findGetter findSetter findStaticGetter findVarHandle findStaticVarHandle bind`)
)

// reflection sees classes and members that are looked for by a string.
func (r *reader) reflection(open int, class, name string) {
	args := r.Args(open)
	at := r.Tokens[open-1].Span
	switch {
	case name == "forName" && (class == "java.lang.Class" || class == "" && r.Is(open-2, ".") && r.Is(open-3, ")")):
		r.load(open, args, class != "")
	case loadClasses()[name]:
		r.load(open, args, true)
	case defineClasses()[name], name == "eval" && (r.scripts || runsScripts(class)):
		r.Compute(at, language.ComputedCode)
	case name == "getMethods", name == "getDeclaredMethods":
		r.Compute(at, language.ComputedName)
	case findMembers()[name] && len(args) > 0:
		of, isClass := strings.CutSuffix(class, ".class")
		if !isClass {
			of = r.mirrored[open-3]
		}
		r.find(args[0], of)
	case findHandles()[name] && len(args) > 2 && (class == "" || strings.HasPrefix(class, "java.lang.invoke.")):
		of := ""
		if written, end := r.chain(args[0][0]); end == args[0][1] {
			for _, class := range r.classOf(strings.TrimSuffix(written, ".class"), open) {
				of = class
			}
		}
		r.find(args[1], of)
	}
}

// load brings in the class that the first literal argument of a call names. Where it is not sure that
// it names a class, it is one if there is a dot in it.
func (r *reader) load(open int, args [][2]int, sure bool) {
	for _, arg := range args {
		text, ok := r.literal(arg)
		if !ok {
			continue
		}
		text = strings.ReplaceAll(strings.TrimSuffix(strings.TrimLeft(text, "[L"), ";"), "$", ".")
		if !sure && !strings.Contains(text, ".") {
			return // of some other class, such as a character set
		}
		r.Import(r.span(arg), text)
		r.results[r.Partner[open]], r.mirrored[r.Partner[open]] = "java.lang.Class", text
		if r.mirrors = add(r.mirrors, text); !slices.Contains(r.mirrors, text) {
			r.Compute(r.span(arg), language.ComputedName)
		}
		return
	}
	if len(args) > 0 {
		r.Compute(r.Tokens[open-1].Span, language.ComputedImport)
	}
}

// find sees a member that an argument names.
func (r *reader) find(arg [2]int, class string) {
	switch text, ok := r.literal(arg); {
	case arg[0] == arg[1]:
	case !ok:
		r.Compute(r.span(arg), language.ComputedName)
	case class != "":
		r.Use(r.span(arg), class+"."+text, false)
	default:
		r.members = append(r.members, member{r.span(arg), text, false})
	}
}

// literal is the text of an argument that is a string literal, or some that are joined.
func (r *reader) literal(arg [2]int) (string, bool) {
	text, behind, ok := r.Constant(r.Meter, arg[0])
	return text, ok && behind == arg[1]
}

// span is where an argument is, up to what was moved aside: that is no part of it.
func (r *reader) span(arg [2]int) language.Span {
	first, last := r.Tokens[arg[0]], r.Tokens[arg[1]-1]
	return language.Span{Start: first.Start, End: max(first.End, last.End)}
}

// unknown adds members whose class is not known: those looked up may be of any class that was loaded,
// and what starts programs is Runtime's wherever that is at hand.
func (r *reader) unknown() {
	runtime := slices.ContainsFunc(r.Imports, func(i language.Import) bool { return i.Module == "java.lang.Runtime" })
	for _, m := range r.members {
		if m.called {
			if runtime {
				r.Use(m.Span, "java.lang.Runtime."+m.name, true)
			}
			continue
		}
		for _, class := range r.mirrors {
			r.Use(m.Span, class+"."+m.name, false)
		}
	}
}

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
