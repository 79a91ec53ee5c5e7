package security

import (
	"strings"
	"sync"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

// rules are those of a policy that are meant for one language, by what they name.
type rules struct {
	modules map[string]*RestrictedModule
	// names has "os.*" under that name.
	names    map[string]*RestrictedName
	patterns []pattern
	// libraries are the modules by the names of their libraries.
	libraries func() map[string]*RestrictedModule
	// longest is how many bytes the longest name of a module or a name has.
	longest func() int
}

func newRules(l *language.Language) *rules {
	r := &rules{modules: map[string]*RestrictedModule{}, names: map[string]*RestrictedName{}}
	r.libraries = sync.OnceValue(func() map[string]*RestrictedModule {
		libraries := map[string]*RestrictedModule{}
		for _, m := range r.modules {
			for _, name := range librariesOf(l, m.Name) {
				libraries[name] = worse(libraries[name], m)
			}
		}
		return libraries
	})
	r.longest = sync.OnceValue(func() int {
		n := 0
		for name := range r.modules {
			n = max(n, len(name))
		}
		for name := range r.names {
			n = max(n, len(name))
		}
		return n
	})
	return r
}

// module is the rule on a module or on what it lies below: the worst, and of those the
// most specific. Of a name that code made long, no more is looked at than a rule may be about.
func (r *rules) module(name, separator string) *RestrictedModule {
	return above(r.modules, name[:min(len(name), r.longest()+len(separator)+1)], separator)
}

// library is the rule on a library's name, or on what that lies below: a scope, an
// organisation, a Maven group.
func (r *rules) library(name string) *RestrictedModule {
	best := above(r.libraries(), name, "/")
	if group, _, ok := strings.Cut(name, ":"); ok {
		if m := above(r.libraries(), group, "."); m != nil && (best == nil || m.Severity > best.Severity) {
			best = m
		}
	}
	return best
}

func above(in map[string]*RestrictedModule, name, separator string) *RestrictedModule {
	if len(in) == 0 {
		return nil
	}
	best := in[name]
	for separator != "" {
		i := strings.LastIndex(name, separator)
		if i < 0 {
			break
		}
		name = name[:i]
		if m := in[name]; m != nil && (best == nil || m.Severity > best.Severity) {
			best = m
		}
	}
	return best
}

// name is the rule on a name or on all below a part of it, the worst, and of those the
// most specific.
func (r *rules) name(name string) *RestrictedName {
	if len(r.names) == 0 {
		return nil
	}
	best := r.names[name]
	for end := min(len(name), r.longest()); end > 0; end-- {
		head := name[:end]
		if !strings.HasSuffix(head, ".") && !strings.HasSuffix(head, "::") {
			continue
		}
		if n := r.names[head+"*"]; n != nil && (best == nil || n.Severity > best.Severity) {
			best = n
		}
	}
	return best
}
