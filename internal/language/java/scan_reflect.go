package java

import (
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

// returns is the class of what a member of a class returns, where more is to be known of it.
func returns(class, member string) string {
	switch class + "." + member {
	case "java.lang.Runtime.getRuntime":
		return "java.lang.Runtime"
	case "java.lang.Class.forName", "java.lang.ClassLoader.loadClass":
		return "java.lang.Class"
	case "java.lang.Class.getClassLoader", "java.lang.ClassLoader.getSystemClassLoader", "java.lang.ClassLoader.getPlatformClassLoader", "java.lang.Thread.getContextClassLoader":
		return "java.lang.ClassLoader"
	case "java.lang.Class.getMethod", "java.lang.Class.getDeclaredMethod":
		return "java.lang.reflect.Method"
	case "java.lang.Thread.currentThread":
		return "java.lang.Thread"
	case "java.lang.invoke.MethodHandles.lookup", "java.lang.invoke.MethodHandles.publicLookup":
		return "java.lang.invoke.MethodHandles.Lookup"
	case "java.net.URL.openConnection":
		return "java.net.URLConnection"
	case "java.net.http.HttpClient.newHttpClient":
		return "java.net.http.HttpClient"
	case "java.nio.file.Paths.get", "java.nio.file.Path.of":
		return "java.nio.file.Path"
	case "javax.script.ScriptEngineManager.getEngineByName", "javax.script.ScriptEngineManager.getEngineByExtension":
		return "javax.script.ScriptEngine"
	}
	if class == "java.lang.ProcessBuilder" && member != "start" && member != "startPipeline" {
		return class
	}
	return ""
}

// supplies tells of methods that return what their class is declared to hold.
func supplies(member string) bool {
	switch member {
	case "get", "call", "join", "next", "orElse", "orElseThrow", "getFirst", "getLast", "peek", "poll", "take", "pop", "remove", "element":
		return true
	}
	return false
}

// special sees what a call at open does that takes names, and what it returns. Its name is
// at i; found are its whole names, none where the class is not known.
func (s *reader) special(i, open int, found []string, call bool) {
	if !call {
		return
	}
	if !s.is(open, "(") {
		open = s.angles(open) // new T<>()
	}
	if !s.is(open, "(") || s.Partner[open] < 0 {
		return
	}
	end := s.Partner[open]
	class, member := "", s.tokens[open-1].Text
	if len(found) > 0 {
		if last := strings.LastIndexByte(found[0], '.'); last > 0 {
			class, member = found[0][:last], found[0][last+1:]
		}
		if s.is(i-1, "new") {
			s.results[end] = found[0]
			return
		}
		s.results[end] = returns(class, member)
	}
	if s.results[end] == "" && s.is(i+1, ".") && i+2 == open-1 && supplies(member) {
		s.results[end] = s.elements[s.tokens[i].Text]
	}
	if member == "getClass" && s.results[end] == "" {
		s.results[end] = "java.lang.Class"
	}
	s.reflection(i, open, class, member)
}

// reflection sees classes and members that are looked for by a string.
func (s *reader) reflection(i, open int, class, member string) {
	switch member {
	case "forName":
		if class == "java.lang.Class" || class == "" && s.is(i-1, ".") && s.is(i-2, ")") && s.results[i-2] == "" {
			s.load(open, class)
		}
	case "loadClass", "findClass", "findSystemClass", "defineClass", "defineHiddenClass", "defineAnonymousClass":
		if strings.HasPrefix(member, "define") {
			s.Compute(s.tokens[open-1].Span, language.ComputedCode)
			return
		}
		s.load(open, "java.lang.ClassLoader")
	case "getMethod", "getDeclaredMethod", "getField", "getDeclaredField":
		s.lookUp(open, 0, s.mirror(open-1))
	case "findStatic", "findVirtual", "findSpecial", "findGetter", "findSetter", "findStaticGetter", "findVarHandle", "findStaticVarHandle", "bind":
		if class != "" && !strings.HasPrefix(class, "java.lang.invoke.") {
			return
		}
		args := s.Args(s.tokens, open)
		if len(args) < 3 {
			return
		}
		of := ""
		if name, end := s.chain(args[0][0]); end == args[0][1] {
			if classes := s.classOf(strings.TrimSuffix(name, ".class"), open); len(classes) > 0 {
				of = classes[0]
			} else {
				of = s.mirrors[name]
			}
		}
		s.lookUp(open, 1, of)
	case "getMethods", "getDeclaredMethods":
		s.Compute(s.tokens[open-1].Span, language.ComputedName)
	case "eval":
		if s.scripts || strings.HasPrefix(class, "javax.script.") || strings.HasPrefix(class, "jdk.jshell.") {
			s.Compute(s.tokens[open-1].Span, language.ComputedCode)
		}
	}
}

// load brings in the class that the first constant argument of a call names.
func (s *reader) load(open int, class string) {
	args := s.Args(s.tokens, open)
	end := s.Partner[open]
	for _, arg := range args {
		text, at, ok := s.constant(arg[0])
		if !ok || at != arg[1] {
			continue
		}
		text = strings.ReplaceAll(strings.TrimSuffix(strings.TrimLeft(text, "[L"), ";"), "$", ".")
		if class == "" && !strings.Contains(text, ".") {
			return // of some other class, such as a character set
		}
		span := language.Span{Start: s.tokens[arg[0]].Start, End: s.tokens[arg[1]-1].End}
		s.Import(span, text)
		s.results[end], s.reflected[end] = "java.lang.Class", text
		if name := s.assignee(open); name != "" {
			s.mirrors[name] = text
		}
		return
	}
	if len(args) > 0 && args[0][0] < args[0][1] {
		s.Compute(s.tokens[open-1].Span, language.ComputedImport)
	}
}

// assignee is the variable that a call of the name in front of open is assigned to.
func (s *reader) assignee(open int) string {
	at := open - 1
	for s.is(at-1, ".") && at > 1 && open-at < 16 {
		s.Step()
		at -= 2
	}
	if s.is(at-1, "=") && at > 1 {
		return s.tokens[at-2].Text
	}
	return ""
}

// mirror is the class that the receiver of the member at i stands for.
func (s *reader) mirror(i int) string {
	at := i - 2
	switch {
	case !s.is(i-1, "."):
		return ""
	case s.is(at, ")"):
		return s.reflected[at]
	case s.is(at, "class"):
		first := at
		for s.is(first-1, ".") && at-first < 32 {
			s.Step()
			first -= 2
		}
		if first < 0 {
			return ""
		}
		name, _ := s.chain(first)
		name, _, _ = strings.Cut(name, ".class")
		if classes := s.classOf(name, first); len(classes) > 0 {
			return classes[0]
		}
		return ""
	}
	return s.mirrors[s.tokens[max(at, 0)].Text]
}

// lookUp sees a member that an argument names.
func (s *reader) lookUp(open, n int, class string) {
	args := s.Args(s.tokens, open)
	if n >= len(args) || args[n][0] >= args[n][1] {
		return
	}
	span := language.Span{Start: s.tokens[args[n][0]].Start, End: s.tokens[args[n][1]-1].End}
	text, end, ok := s.constant(args[n][0])
	switch {
	case !ok || end != args[n][1]:
		s.Compute(span, language.ComputedName)
	case class != "":
		s.Use(span, class+"."+text, false)
	}
}
