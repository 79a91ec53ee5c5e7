package llmsandbox

import (
	"path"
	"slices"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/environ"
	"github.com/llmsandbox/llmsandbox/internal/language/all"
)

const (
	// librariesVariable names the library folders that a sandbox was opened with, for
	// those who attach to it.
	librariesVariable = "SANDBOX_LIBRARIES"
	// maxLibraryFolders bounds how many library folders a sandbox has.
	maxLibraryFolders = 64
)

// libraryLanguage returns the language of a library folder, or "" for what is none: names
// come out of the sandbox, too.
func libraryLanguage(dir string) string {
	key, ok := strings.CutPrefix(dir, libraryPrefix)
	name, hash, cut := strings.Cut(key, "-")
	if !ok || !cut || len(hash) != 32 || strings.Trim(hash, "0123456789abcdef") != "" {
		return ""
	}
	lang, err := all.Get(name)
	if err != nil || lang.Name != name || lang.Libraries == nil {
		return ""
	}
	return name
}

// libraryFolders are the valid ones of a list, each once.
func libraryFolders(list []string) []string {
	var dirs []string
	for _, dir := range list {
		if len(dirs) < maxLibraryFolders && libraryLanguage(dir) != "" && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// withLibraries returns an environment in which the libraries of all folders are found.
func withLibraries(env, dirs []string) []string {
	for _, lang := range all.All() {
		own := ofLanguage(dirs, lang.Name)
		if len(own) == 0 {
			continue
		}
		env = environ.Override(env, lang.Libraries.Use(own, func(name string) string { return environ.Value(env, name) }))
	}
	return env
}

func ofLanguage(dirs []string, lang string) []string {
	var own []string
	for _, dir := range dirs {
		if libraryLanguage(dir) == lang {
			own = append(own, dir)
		}
	}
	return own
}

// listedLibraries are the folders that an environment names.
func listedLibraries(env []string) []string {
	return libraryFolders(strings.Split(environ.Value(env, librariesVariable), ":"))
}

// libraryMark is what marks a library folder as whole, in the sandbox that it was
// installed in later.
func libraryMark(dir string) string { return path.Join(libraryMarks, path.Base(dir)) }
