package declared

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// lexical says how a policy tells code from comments and strings, and which names are in it.
type lexical struct {
	LineComments    []string `toml:"line_comments"`
	BlockComments   []block  `toml:"block_comments"`
	Strings         []quoted `toml:"strings"`
	Imports         []string `toml:"imports"`
	Separators      []string `toml:"separators"`
	ModuleSeparator string   `toml:"module_separator"`
	Variables       string   `toml:"variables"`
	IgnoreCase      bool     `toml:"ignore_case"`
}

type block struct {
	Open   string `toml:"open"`
	Close  string `toml:"close"`
	Nested bool   `toml:"nested"`
}

type quoted struct {
	Open   string `toml:"open"`
	Close  string `toml:"close"` // empty: the string is Open
	Escape string `toml:"escape"`
	Lines  bool   `toml:"lines"` // it goes on over the end of a line
	Name   string `toml:"name"`  // that such a string uses, such as what executes it
}

// A delimiter begins a comment or a string.
type delimiter struct {
	quoted
	comment, nested bool
}

// rules are a checked lexical.
type rules struct {
	delimiters      []delimiter // the longest first
	imports         []string
	separators      []string
	moduleSeparator string
	variables       string
	ignoreCase      bool
	problem         string
}

func (x *lexical) rules(title string) (*rules, error) {
	r := &rules{
		imports: x.Imports, separators: x.Separators, moduleSeparator: x.ModuleSeparator, variables: x.Variables, ignoreCase: x.IgnoreCase,
		problem: "only the words of " + title + " are read, and not what a program does with them",
	}
	for _, list := range [][]string{x.LineComments, x.Imports, x.Separators} {
		if len(list) > maxList {
			return nil, wrong("policy", "there are more than %d of a kind", maxList)
		}
	}
	if len(x.BlockComments) > maxList || len(x.Strings) > maxList {
		return nil, wrong("policy", "there are more than %d of a kind", maxList)
	}
	for _, open := range x.LineComments {
		if !validDelimiter(open) {
			return nil, wrong("policy.line_comments", "%.20q begins no comment", open)
		}
		r.delimiters = append(r.delimiters, delimiter{quoted: quoted{Open: open, Close: "\n"}, comment: true})
	}
	for _, b := range x.BlockComments {
		if !validDelimiter(b.Open) || !validDelimiter(b.Close) || b.Nested && b.Open == b.Close {
			return nil, wrong("policy.block_comments", "%.20q and %.20q enclose no comment", b.Open, b.Close)
		}
		r.delimiters = append(r.delimiters, delimiter{quoted: quoted{Open: b.Open, Close: b.Close, Lines: true}, comment: true, nested: b.Nested})
	}
	for _, s := range x.Strings {
		switch {
		case !validDelimiter(s.Open) || s.Close != "" && !validDelimiter(s.Close):
			return nil, wrong("policy.strings", "%.20q and %.20q enclose no string", s.Open, s.Close)
		case s.Escape != "" && !validDelimiter(s.Escape):
			return nil, wrong("policy.strings", "%.20q escapes nothing", s.Escape)
		case len(s.Name) > 64 || !plainText(s.Name):
			return nil, wrong("policy.strings", "%.80q is no name", s.Name)
		}
		r.delimiters = append(r.delimiters, delimiter{quoted: s})
	}
	slices.SortStableFunc(r.delimiters, func(a, b delimiter) int { return cmp.Compare(len(b.Open), len(a.Open)) })
	for i, d := range r.delimiters {
		if slices.ContainsFunc(r.delimiters[:i], func(before delimiter) bool { return before.Open == d.Open }) {
			return nil, wrong("policy", "%q begins more than one kind of comment or string", d.Open)
		}
	}
	for _, word := range x.Imports {
		c := lex.Cursor{Code: word}
		if len(word) > 64 || word == "" || c.Identifier("") != word {
			return nil, wrong("policy.imports", "%.80q is no word", word)
		}
		if x.IgnoreCase && word != strings.ToLower(word) {
			return nil, wrong("policy.imports", "write %q in lower case: ignore_case is set", word)
		}
	}
	for _, s := range append([]string{x.ModuleSeparator}, x.Separators...) {
		if len(s) > 8 || strings.ContainsAny(s, "{},") || s != "" && !validDelimiter(s) {
			return nil, wrong("policy.separators", "%.20q parts no names", s)
		}
	}
	if len(x.Variables) > 16 || !plainText(x.Variables) {
		return nil, wrong("policy.variables", "%.20q are not the characters before variables", x.Variables)
	}
	slices.SortStableFunc(r.separators, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	return r, nil
}

func validDelimiter(text string) bool {
	return text != "" && len(text) <= 32 && utf8.ValidString(text) && strings.TrimSpace(text) != ""
}
