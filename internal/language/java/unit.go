package java

import (
	"context"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/lex"
)

// A unit is what a compilation unit declares at its top level.
type unit struct {
	pkg   string
	types []declared
}

type declared struct {
	name   string
	public bool
	main   bool // has a static main method
}

// mainClass is the class to start: a public one with main, else the first with main,
// else the public one, else the first, so that the JVM reports what is missing.
func (u unit) mainClass() string {
	best, score := "Main", -1
	for _, t := range u.types {
		s := 0
		if t.main {
			s += 2
		}
		if t.public {
			s++
		}
		if s > score {
			best, score = t.name, s
		}
	}
	if u.pkg != "" {
		return u.pkg + "." + best
	}
	return best
}

// fileName is the name javac wants for the file, without its ending.
func (u unit) fileName() string {
	for _, t := range u.types {
		if t.public {
			return t.name
		}
	}
	return "Main"
}

// maxPackage is how long a package's name may be: as long as a path on Linux.
const maxPackage = 4096

// parse finds the package, the top-level types and which of them have a main. What is no Java is
// javac's to report.
func parse(code []byte) (u unit, err error) {
	err = language.Metered(context.Background(), len(code), func(m *language.Meter) {
		p := parser{unit: &u}
		l := lex.Lexer{Cursor: lex.Cursor{Code: string(code)}, Facts: &lex.Facts{Meter: m}, Table: &table, Ignored: ignored, Tokens: []lex.Token{}}
		l.Add = func(t *lex.Token) {
			if t.Kind == lex.Name || t.Kind == lex.Punct {
				p.token(t)
			}
			l.Tokens = l.Tokens[:0] // none is looked at again
		}
		l.Run()
	})
	return u, err
}

// A parser goes over tokens.
type parser struct {
	*unit
	depth, parens             int // how many brackets are open
	public, static, inPackage bool
	prev, prev2               string // the last tokens
}

func (p *parser) token(t *lex.Token) {
	switch t.Text {
	case "(":
		if p.parens == 0 && p.depth == 1 && p.prev == "main" && p.prev2 == "void" && p.static && len(p.types) > 0 {
			p.types[len(p.types)-1].main = true
		}
		p.parens++
	case ")":
		p.parens = max(p.parens-1, 0)
	case "{":
		p.depth, p.public, p.static = p.depth+1, false, false
	case "}":
		p.depth, p.public, p.static = max(p.depth-1, 0), false, false
	case ";":
		p.public, p.static = false, false
	}
	if p.parens == 0 {
		switch {
		case t.Text == "static":
			p.static = true
		case p.depth == 0 && t.Text == "public":
			p.public = true
		case p.depth == 0 && t.Text == "package":
			p.inPackage = true
		case t.Text == ";":
			p.inPackage = false
		case p.inPackage:
			if len(p.pkg)+len(t.Text) <= maxPackage {
				p.pkg += t.Text
			}
		case p.depth == 0 && t.Kind == lex.Name && declares(p.prev) && len(t.Text) <= 200:
			p.types = append(p.types, declared{name: t.Text, public: p.public})
		}
	}
	p.prev, p.prev2 = t.Text, p.prev
}

func declares(word string) bool {
	return word == "class" || word == "interface" || word == "enum" || word == "record"
}
