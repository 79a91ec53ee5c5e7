package javascript

import "strings"

// A kind is what is known of a value.
type kind uint8

const (
	unknown  kind = iota
	isText        // the string text
	isName        // what has the name text
	isModule      // the module text
	isGlobal      // the object of what is there without an import
)

// A value is what an expression stands for, as far as it is known.
type value struct {
	kind kind
	text string
}

func (v value) resolved() bool { return v.kind != unknown }

// name is what a value is called.
func (v value) name() string {
	switch v.kind {
	case isName, isModule:
		return v.text
	case isGlobal:
		return "globalThis"
	}
	return ""
}

// member is the member of a value.
func (v value) member(name string) value {
	if name == "constructor" && !(v.kind == isName && (v.text == "module" || strings.HasPrefix(v.text, "module.") || v.text == "require.main" || v.text == "process.mainModule")) {
		return value{isName, name}
	}
	switch v.kind {
	case isGlobal:
		return free(name)
	case isModule:
		if name == "default" {
			return v
		}
		return value{isName, v.text + "." + name}
	case isName:
		if v.text != "Reflect" && (name == "call" || name == "apply" || name == "bind") {
			return v
		}
		if len(v.text) < 512 {
			return value{isName, v.text + "." + name}
		}
	}
	return value{}
}

// free is what a name that the program does not declare stands for.
func free(name string) value {
	switch name {
	case "globalThis", "global", "window", "self", "root", "GLOBAL":
		return value{kind: isGlobal}
	}
	return value{isName, name}
}

// variable is the value of the variable at token i.
func (s *scan) variable(i int) value {
	name := s.tokens[i].Text
	v := s.vars[i]
	if v == nil {
		if v = s.globals[name]; v == nil {
			return free(name)
		}
	}
	switch v.state {
	case 1:
		return free(name) // it is set from what it was before
	case 0:
		v.state = 1
		v.value = s.settle(v, name)
		v.state = 2
	}
	return v.value
}

// settle finds a variable's value: what can run code or bring in a module goes first.
func (s *scan) settle(v *binding, name string) value {
	var best value
	for _, src := range v.sources {
		got := s.source(src)
		if got.kind == isText && (v.open || len(v.sources) > 1) {
			continue
		}
		if !best.resolved() || got.kind == isName && special(got.text) || got.kind != unknown && best.kind == isText {
			best = got
		}
	}
	if !best.resolved() && v.soft {
		return free(name)
	}
	return best
}

// source is the value from one place.
func (s *scan) source(src origin) value {
	v := src.known
	if src.expr >= 0 {
		v, _ = s.expression(src.expr)
	}
	if src.imports {
		if v.kind != isText {
			return value{}
		}
		v = value{isModule, moduleName(v.text)}
	}
	for _, step := range src.path {
		name := step.name
		if step.at > 0 {
			key, _ := s.expression(step.at)
			if key.kind != isText {
				return value{}
			}
			name = key.text
		}
		if v.kind == unknown && name != "constructor" {
			return value{}
		}
		v = v.member(name)
	}
	return v
}
