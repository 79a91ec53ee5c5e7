package java

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

// parse finds the package, the top-level types and which of them have a main. It
// never fails: what is no Java is javac's to report.
func parse(code []byte) unit {
	var u unit
	t := tokenizer{code: code}
	depth, parens := 0, 0
	public, static, inPackage := false, false, false
	prev, prev2 := "", ""
	for tok := t.next(); tok != ""; tok = t.next() {
		switch tok {
		case "(":
			if parens == 0 && depth == 1 && prev == "main" && prev2 == "void" && static && len(u.types) > 0 {
				u.types[len(u.types)-1].main = true
			}
			parens++
		case ")":
			parens = max(parens-1, 0)
		case "{":
			depth, public, static = depth+1, false, false
		case "}":
			depth, public, static = max(depth-1, 0), false, false
		case ";":
			public, static = false, false
		}
		if parens == 0 {
			switch {
			case tok == "static":
				static = true
			case depth == 0 && tok == "public":
				public = true
			case depth == 0 && tok == "package":
				inPackage = true
			case tok == ";":
				inPackage = false
			case inPackage:
				if len(u.pkg)+len(tok) <= maxPackage {
					u.pkg += tok
				}
			case depth == 0 && isName(tok) && declares(prev) && len(tok) <= 200:
				u.types = append(u.types, declared{name: tok, public: public})
			}
		}
		prev, prev2 = tok, prev
	}
	return u
}

func declares(word string) bool {
	return word == "class" || word == "interface" || word == "enum" || word == "record"
}
