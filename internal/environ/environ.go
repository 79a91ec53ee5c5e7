// Package environ works on environments: lists of NAME=VALUE lines. Nothing changes the
// lists it is given.
package environ

import (
	"slices"
	"strings"
)

// DefaultPath is the PATH of an image that has none.
const DefaultPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// WithSystemPath adds to an environment's PATH the directories of programs that root runs, such as useradd, which images leave out.
func WithSystemPath(env []string) []string {
	path := Value(env, "PATH")
	for _, dir := range []string{"/usr/local/sbin", "/usr/sbin", "/sbin"} {
		if !slices.Contains(strings.Split(path, ":"), dir) {
			path += ":" + dir
		}
	}
	return Override(env, []string{"PATH=" + path})
}

// Own begins the names of LLM Sandbox's own variables.
const Own = "LLMSANDBOX_"

// OfPrograms are the lines of an image's or a container's environment that programs get:
// without those that are no variables, because they have no "=" or no name, and without
// those that begin with Own.
func OfPrograms(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		name, _, ok := strings.Cut(kv, "=")
		return !ok || name == "" || strings.HasPrefix(name, Own)
	})
}

// Value is the value of a variable, or "" where there is none; of several the last counts.
func Value(env []string, name string) string {
	for _, kv := range slices.Backward(env) {
		if value, ok := strings.CutPrefix(kv, name+"="); ok {
			return value
		}
	}
	return ""
}

// Override adds lines to an environment; a later one of the same name takes the place of
// an earlier one.
func Override(env, with []string) []string {
	at := make(map[string]int, len(env)+len(with))
	out := make([]string, 0, len(env)+len(with))
	for _, lines := range [][]string{env, with} {
		for _, kv := range lines {
			name, _, _ := strings.Cut(kv, "=")
			if i, ok := at[name]; ok {
				out[i] = kv
				continue
			}
			at[name] = len(out)
			out = append(out, kv)
		}
	}
	return out
}

// AddMissing adds the lines whose names env does not have.
func AddMissing(env, add []string) []string {
	has := make(map[string]bool, len(env))
	for _, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		has[name] = true
	}
	out := slices.Clone(env)
	for _, kv := range add {
		if name, _, _ := strings.Cut(kv, "="); !has[name] {
			out = append(out, kv)
		}
	}
	return out
}
