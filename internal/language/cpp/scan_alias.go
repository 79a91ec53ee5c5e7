package cpp

import (
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// using notes names and namespaces that are used without their own.
func (n *names) using(i int) {
	s := n.stream
	if s.is(i+1, "namespace") {
		if of, _ := n.chain(i + 2); of != "" {
			n.open[of] = true
		}
		return
	}
	if s.name(i+1) && s.is(i+2, "=") {
		if to, end := n.chain(i + 3); to != "" && (s.is(end, ";") || s.is(end, "<")) {
			n.alias(s.tokens[i+1].Text, to)
		}
		return
	}
	if to, end := n.chain(i + 1); s.is(end, ";") && strings.Contains(to, "::") {
		n.alias(s.tokens[end-1].Text, to)
	}
}

// typedef notes another name of a class.
func (n *names) typedef(i int) {
	s := n.stream
	if to, end := n.chain(i + 1); strings.Contains(to, "::") && s.name(end) && s.is(end+1, ";") {
		n.alias(s.tokens[end].Text, to)
	}
}

func (n *names) alias(name, to string) {
	if to = n.plain(to, -1); n.aliases[name] == "" && name != to {
		n.aliases[name] = to
	}
}

// assign notes a variable that a function is assigned to.
func (n *names) assign(i int) {
	s := n.stream
	from := i + 1
	if s.is(from, "&") {
		from++
	}
	to, end := n.chain(from)
	if to == "" || !(s.is(end, ";") || s.is(end, ",") || s.is(end, ")") || s.is(end, "}")) {
		return
	}
	if to = n.plain(to, -1); !critical(to) && !addressed(to) && !strings.Contains(to, "::") && n.aliases[to] == "" {
		return
	}
	name := i - 1
	if s.is(name, ")") && s.Partner[name] > 1 {
		// int (*f)(const char *) = system
		if name = s.Partner[name] - 1; s.is(name, ")") {
			name--
		}
	}
	if s.name(name) && !expression(s.tokens[name].Text) && (s.is(i, "=") || s.typed(name)) {
		n.alias(s.tokens[name].Text, to)
	}
}

// chain is the qualified name that begins at i, and where it ends.
func (n *names) chain(i int) (name string, end int) {
	s := n.stream
	if s.is(i, "::") {
		i++
	}
	if !s.name(i) {
		return "", i
	}
	if name = s.tokens[i].Text; !s.is(i+1, "::") {
		return name, i + 1
	}
	var b strings.Builder
	b.WriteString(name)
	for i++; s.is(i, "::") && (s.name(i+1) || s.is(i+1, "template") && s.name(i+2)); i += 2 {
		n.Step()
		if s.is(i+1, "template") {
			i++
		}
		b.WriteString("::" + s.tokens[i+1].Text)
	}
	return b.String(), i
}

// plain is a qualified name with aliases resolved, and without what C's library does not
// need. args is how many arguments it is called with, -1 when it is not.
func (n *names) plain(name string, args int) string {
	for range lex.MaxDepth {
		root, rest, more := strings.Cut(name, "::")
		to, ok := n.aliases[root]
		if !ok || to == root {
			break
		}
		if name = to; more {
			name += "::" + rest
		}
		if len(name) > 1000 {
			break
		}
	}
	if n.open["std"] && strings.HasPrefix(name, "filesystem::") {
		name = "std::" + name
	}
	if bare, ok := strings.CutPrefix(name, "std::"); ok && inC(bare) && !(bare == "remove" && args > 1) {
		return bare
	}
	return name
}
