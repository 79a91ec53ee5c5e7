package golang

import (
	"path"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/environ"
	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/language/registries"
)

var libraries = language.Libraries{
	Program:    "go",
	Needs:      [][]string{{"go"}},
	Check:      check,
	Install:    install,
	Use:        use,
	Registries: findRegistries,
}

const element = `[A-Za-z0-9_~](?:[A-Za-z0-9_.~-]*[A-Za-z0-9_~-])?`

var checkWritten = registries.Check("Go", `^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)+(?:/`+element+`)+`+
	`(?:@(?:latest|v[0-9]+(?:\.[0-9]+){0,2}(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?|[0-9a-f]{7,40}))?$`,
	"write it like golang.org/x/text, github.com/google/uuid@v1.6.0 or example.org/m@latest", nil)

// check takes a module's or package's path with a version, "latest" or a commit.
func check(library string) (string, error) {
	library, err := checkWritten(library)
	return strings.TrimSuffix(library, "@latest"), err
}

// libraryName is the path without a version.
var libraryName = registries.NameBefore("@")

// modules is the module cache of a library directory.
const modules = "mod"

// install makes src.Dir a module that requires the libraries, with a module cache that
// holds them and all they need. Builds put it beside the program in a workspace.
func install(src language.InstallSource) (language.Plan, error) {
	argv := []string{src.Program("go"), "get"}
	for _, library := range src.Libraries {
		// With every package below it: what those import from elsewhere is needed, too.
		name, version, found := strings.Cut(library, "@")
		if name += "/..."; found {
			name += "@" + version
		}
		argv = append(argv, name)
	}
	env := append(src.Registries.Env[:len(src.Registries.Env):len(src.Registries.Env)],
		"GOMODCACHE="+path.Join(src.Dir, modules), "GOCACHE="+path.Join(src.TempDir, ".install-cache"), "GOPATH="+path.Join(src.TempDir, ".install-go"),
		"GOTOOLCHAIN=local", "GOWORK=off", "GOENV=off", "GOFLAGS=-modcacherw", "GOTELEMETRY=off", "GOVCS=*:off")
	if src.Local != "" {
		// A directory laid out as a proxy is, such as a module cache's cache/download.
		env = append(env, "GOPROXY=file://"+src.Local, "GOSUMDB=off")
	}
	mod := "module libraries.invalid/" + strings.TrimLeft(path.Base(src.Dir), ".") + "\n"
	return language.Plan{
		Files: append([]language.File{{Path: path.Join(src.Dir, "go.mod"), Data: []byte(mod), Mode: 0o644}}, src.Registries.Files...),
		Steps: []language.Step{{Argv: argv, Dir: src.Dir, Env: env}},
	}, nil
}

// use has nothing to add: the plan of a run names the directories.
func use([]string, func(string) string) []string { return nil }

// proxies is a GOPROXY of the archives in the directories' module caches.
func proxies(dirs []string) string {
	var list []string
	for _, dir := range dirs {
		list = append(list, "file://"+path.Join(dir, modules, "cache/download"))
	}
	return strings.Join(append(list, "off"), ",")
}

// workspace is the step that puts the module in the plan's directory into a workspace with
// the library directories, and the environment of it and of builds there, made of another. A variable that
// comes twice would be one thing to some programs and another to others.
func workspace(src language.Source, dir string, of []string) (file string, init language.Step) {
	file = src.Private(src.TempDir) + ".work"
	env := []string{"GOWORK=" + file, "GOFLAGS=", "GOSUMDB=off"}
	if len(src.Libraries) == 1 {
		env = append(env, "GOMODCACHE="+path.Join(src.Libraries[0], modules), "GOPROXY=off")
	} else {
		// There is only one cache, so one is made of what the builds need of all.
		env = append(env, "GOMODCACHE="+path.Join(src.TempDir, ".cache/go-mod"), "GOPROXY="+proxies(src.Libraries))
	}
	env = environ.AddMissing(env, of)
	argv := append([]string{src.Program("go"), "work", "init", "."}, src.Libraries...)
	return file, language.Step{Argv: argv, Dir: dir, Env: env, Compile: true}
}
