package golang

import (
	"encoding/json"
	"fmt"
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

// findRegistries are the module proxies that the go command is configured for on this
// machine, and its checksum database. What it would get from repositories directly is
// not reached.
func findRegistries(ask language.Ask) (language.Registries, error) {
	var r language.Registries
	names := []string{"GOPROXY", "GOSUMDB", "GONOSUMDB", "GOPRIVATE", "GONOPROXY"}
	out, err := ask.Program(append([]string{"go", "env", "-json"}, names...)...)
	if err != nil {
		return r, fmt.Errorf("ask the go command for its proxies: %w", err)
	}
	var config map[string]string
	if err := json.Unmarshal(out, &config); err != nil {
		return r, fmt.Errorf("%w: the go command's is not what it should be: %w", registries.ErrConfiguration, err)
	}
	// Behind a comma the next one is asked when a module is not there, behind a bar
	// after any error.
	var list strings.Builder
	rest, last := config["GOPROXY"], ""
	for rest != "" {
		proxy, separator := rest, ""
		if at := strings.IndexAny(rest, ",|"); at >= 0 {
			proxy, separator, rest = rest[:at], rest[at:at+1], rest[at+1:]
		} else {
			rest = ""
		}
		if proxy = strings.TrimSpace(proxy); proxy == "off" {
			break
		}
		if proxy == "direct" || proxy == "" || strings.HasPrefix(proxy, "file:") {
			continue
		}
		clean, err := registries.Add(&r, proxy)
		if err != nil {
			return r, fmt.Errorf("GOPROXY: %w", err)
		}
		list.WriteString(last + clean)
		last = separator
	}
	if list.Len() == 0 {
		return r, fmt.Errorf("%w: GOPROXY names no proxy, and repositories are not reached directly: set one, or give a folder laid out as a proxy", registries.ErrConfiguration)
	}
	if err := registries.Netrc(&r, ask); err != nil {
		return r, err
	}
	r.Env = []string{"GOPROXY=" + list.String()}
	for _, name := range names[1:] {
		r.Env = append(r.Env, name+"="+config[name])
	}
	if err := sums(&r, config["GOSUMDB"]); err != nil {
		return r, err
	}
	trusted, err := registries.Trust(&r, ask)
	if trusted {
		r.Env = append(r.Env, "SSL_CERT_FILE="+registries.CA)
	}
	return r, err
}

// sums notes where a checksum database is asked, which GOSUMDB names with, perhaps, its
// key and address. A proxy may answer for it.
func sums(r *language.Registries, database string) error {
	fields := strings.Fields(database)
	if len(fields) == 0 || fields[0] == "off" {
		return nil
	}
	name, _, _ := strings.Cut(fields[0], "+")
	address := "https://" + name
	if len(fields) > 1 {
		address = fields[1]
	}
	if _, err := registries.Add(r, address); err != nil {
		return fmt.Errorf("GOSUMDB: %w", err)
	}
	return nil
}
