package main

import (
	"go/importer"
	"go/token"
	"go/types"
	"path"
	"regexp"
	"slices"
	"sort"
	"strings"
)

var (
	chain    = regexp.MustCompile(`([\pL_][\pL\pN_]*)\.([\pL_][\pL\pN_]*)?$`)
	word     = regexp.MustCompile(`[\pL_][\pL\pN_]*$`)
	wordHead = regexp.MustCompile(`^[\pL\pN_]*`)
)

// before is the code up to the cursor, which counts code points.
func before(code string, cursor int) (string, string) {
	points := []rune(code)
	cursor = min(max(cursor, 0), len(points))
	return string(points[:cursor]), string(points[cursor:])
}

func (k *kernel) complete(code string, cursor int) ([]string, int) {
	text, _ := before(code, cursor)
	var names []string
	prefix := word.FindString(text)
	if m := chain.FindStringSubmatch(text); m != nil {
		names, prefix = k.members(m[1]), m[2]
	} else {
		names = k.names()
		for t := token.BREAK; t <= token.VAR; t++ {
			names = append(names, t.String())
		}
		names = append(names, types.Universe.Names()...)
	}
	matches := []string{}
	for _, n := range names {
		if strings.HasPrefix(n, prefix) {
			matches = append(matches, n)
		}
	}
	sort.Strings(matches)
	matches = slices.Compact(matches)
	return matches[:min(len(matches), 1000)], cursor - len([]rune(prefix))
}

// names are those that the session knows.
func (k *kernel) names() []string {
	names := sorted(k.session.vars)
	for _, d := range k.session.decls {
		for _, n := range d.names {
			if !strings.Contains(n, ".") {
				names = append(names, n)
			}
		}
	}
	for _, i := range k.session.imports {
		names = append(names, i.as())
	}
	return names
}

func (i imported) as() string {
	if i.name != "" {
		return i.name
	}
	return path.Base(i.path)
}

// members are a variable's fields and methods, or what a package exports.
func (k *kernel) members(of string) (names []string) {
	if v, ok := k.session.vars[of]; ok {
		t := v.t
		if p, ok := t.Underlying().(*types.Pointer); ok {
			t = p.Elem()
		}
		methods := types.NewMethodSet(types.NewPointer(t))
		for i := range methods.Len() {
			names = append(names, methods.At(i).Obj().Name())
		}
		if s, ok := t.Underlying().(*types.Struct); ok {
			for i := range s.NumFields() {
				names = append(names, s.Field(i).Name())
			}
		}
		return names
	}
	for _, i := range k.session.imports {
		if i.as() != of {
			continue
		}
		p, err := importer.ForCompiler(token.NewFileSet(), "gc", k.export).Import(i.path)
		if err != nil {
			return nil
		}
		for _, n := range p.Scope().Names() {
			if token.IsExported(n) {
				names = append(names, n)
			}
		}
	}
	return names
}

func (k *kernel) inspect(code string, cursor int) string {
	left, right := before(code, cursor)
	name := word.FindString(left) + wordHead.FindString(right)
	for _, v := range k.variables {
		if v.Name == name {
			return v.Name + ": " + v.Type + "\n" + v.Value
		}
	}
	for _, d := range k.session.decls {
		if slices.Contains(d.names, name) {
			return d.text
		}
	}
	return ""
}
