package layers

import (
	"slices"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/environ"
)

// prefix is followed by the key of a library directory.
const prefix = "/tmp/" + libraryName

const (
	someHash  = "0123456789abcdef0123456789abcdef"
	otherHash = "ffffffffffffffffffffffffffffffff"
)

func TestLibraryLanguage(t *testing.T) {
	for dir, want := range map[string]string{
		prefix + "python-" + someHash:                       "python",
		prefix + "javascript-" + someHash:                   "javascript",
		prefix + "py-" + someHash:                           "", // an alias
		prefix + "cobol-" + someHash:                        "",
		prefix + "python-" + someHash[1:]:                   "",
		prefix + "python-" + someHash + "/..":               "",
		prefix + "python-" + strings.ToUpper(someHash):      "",
		prefix + "python-" + someHash[:31] + "/":            "",
		"/srv/a/" + keptDir + "/python-" + someHash:         "python",
		"/srv/a/" + keptDir + "/python-" + someHash[1:]:     "",
		"/srv/a/" + keptDir + "/python-" + someHash + "/b":  "",
		"/srv/a" + keptDir + "/python-" + someHash:          "",
		"/etc/" + prefix + "python-" + someHash:             "",
		prefix + "python":                                   "",
		prefix:                                              "",
		"":                                                  "",
		prefix + "python-" + someHash[:30] + "\x00a":        "",
		"/tmp/../tmp/.llmsandbox-lib-python-" + someHash:    "",
		prefix + "python-" + someHash + ":/tmp/elsewhere":   "",
		prefix + "python-" + someHash[:29] + "../"[:3] + "": "",
	} {
		if got := libraryLanguage(dir); got != want {
			t.Errorf("%q is of %q, want %q", dir, got, want)
		}
	}
}

// TestHostileLibraryLists: what a sandbox says of itself is no more than a list of its
// own directories.
func TestHostileLibraryLists(t *testing.T) {
	one, two := prefix+"python-"+someHash, prefix+"python-"+otherHash
	list := []string{"/etc", one, one, "../x", two, ""}
	if got := validDirs(list); !slices.Equal(got, []string{one, two}) {
		t.Errorf("%q, want %q", got, []string{one, two})
	}
	var many []string
	for i := range 1000 {
		many = append(many, prefix+"python-"+strings.Repeat(string("0123456789abcdef"[i%16]), 31)+string("0123456789abcdef"[i/16%16]))
	}
	if got := validDirs(many); len(got) != maxDirs {
		t.Errorf("%d directories, want %d", len(got), maxDirs)
	}
	if got := listedLibraries([]string{"A=b", librariesVariable + "=" + one + ":/etc:" + two}); !slices.Equal(got, []string{one, two}) {
		t.Errorf("%q, want %q", got, []string{one, two})
	}
}

func TestWithLibraries(t *testing.T) {
	python := prefix + "python-" + someHash
	env := []string{"PATH=/bin", "PYTHONPATH=/own", "PYTHONPATH=/later"}
	before := slices.Clone(env)
	got := withLibraries(env, []string{python})
	if !slices.Equal(env, before) {
		t.Errorf("the caller's environment was changed: %q, want %q", env, before)
	}
	path := environ.Value(got, "PYTHONPATH")
	if !strings.HasPrefix(path, python) || !strings.HasSuffix(path, ":/later") {
		t.Errorf("PYTHONPATH=%s, want path beginning with %q, path ending in \":/later\"", path, python)
	}
	if p := environ.Value(got, "PATH"); !strings.HasPrefix(p, python) || !strings.HasSuffix(p, ":/bin") {
		t.Errorf("PATH=%s, want p beginning with %q, p ending in \":/bin\"", p, python)
	}
	if none := withLibraries(env, nil); !slices.Equal(none, env) {
		t.Errorf("%q, want %q", none, env)
	}
}
