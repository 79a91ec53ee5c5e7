package r

import (
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// call sees what functions do that take a package's or a function's name, or code. The name
// is at i, the call's bracket at open.
func (s *reader) call(i, open int, function string) {
	piped := s.piped(i)
	switch function {
	case "library", "require":
		s.library(open, piped)
	case "requireNamespace", "loadNamespace", "attachNamespace", "asNamespace", "getNamespace":
		s.importOf(s.arg(open, piped, 0, "package", "ns", "name"))
	case "pacman::p_load":
		for _, bounds := range s.Args(s.tokens, open) {
			if from, name := s.bound(bounds); name == "" && from < bounds[1] && s.named(from) {
				s.Import(s.tokens[from].Span, s.tokens[from].Text)
			}
		}
	case "get", "get0", "match.fun", "getFunction", "getAnywhere", "as.name", "as.symbol", "call", ".Primitive", "rlang::sym", "rlang::exec", "rlang::call2", "purrr::as_mapper":
		s.functionOf(s.arg(open, piped, 0, "x", "FUN", "f", "name", "what", ".fn"), function != "match.fun" && function != "rlang::exec", "")
	case "mget":
		s.names(s.arg(open, piped, 0, "x"))
	case "do.call":
		s.functionOf(s.arg(open, piped, 0, "what"), false, "")
		s.doCall(open, piped)
	case "getExportedValue", "getFromNamespace":
		ns, of := s.arg(open, piped, 0, "ns"), s.arg(open, piped, 1, "name")
		if function == "getFromNamespace" {
			ns, of = s.arg(open, piped, 1, "ns"), s.arg(open, piped, 0, "x")
		}
		pkg := s.importOf(ns)
		s.functionOf(of, true, pkg)
	case "parse":
		s.code(s.arg(open, piped, -1, "text"), s.arg(open, piped, 0, "file"))
	case "str2lang", "str2expression", "rlang::parse_expr", "rlang::parse_exprs", "rlang::parse_quo":
		s.code(s.arg(open, piped, 0, "s", "text", "x"), argument{})
	case "source", "sys.source":
		if a := s.arg(open, piped, 0, "file"); !a.none() {
			if text, ok := s.text(a); !ok || strings.Contains(text, "://") {
				s.Compute(s.span(a), language.ComputedCode)
			}
		}
	case "lapply", "sapply", "vapply", "tapply", "outer", "apply", "aggregate", "Map", "mapply", "Filter", "Reduce", "Position", "Find", "rapply", "eapply", "sweep", "by", "purrr::map", "purrr::walk":
		s.mapped(open, piped, function)
	}
}

// piped is what is piped into the call of the name at i: only one token is looked at.
func (s *reader) piped(i int) argument {
	before := s.previous(i - 1)
	if !s.is(before, "|>") && !s.is(before, "%>%") {
		return argument{}
	}
	if at := s.previous(before - 1); s.kind(at) == lex.String && (at == 0 || s.ends(at-1) || s.is(at-1, "{") || s.is(at-1, "(")) {
		return argument{at, at + 1}
	}
	return argument{before, before + 1}
}

// code reads code in a string.
func (s *reader) code(a, file argument) {
	switch {
	case a.none() && file.none():
	case a.none():
		s.Compute(s.span(file), language.ComputedCode)
	default:
		text, ok := s.text(a)
		if !ok {
			s.Compute(s.span(a), language.ComputedCode)
			return
		}
		s.Nested(s.span(a), func() { read(s.Facts, []byte(text)) })
	}
}
