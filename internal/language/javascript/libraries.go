package javascript

import (
	_ "embed"
	"path"
	"slices"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/language/registries"
)

var libraries = language.Libraries{
	Program:    "node",
	Needs:      [][]string{{"node", "nodejs"}, {"npm"}},
	Check:      check,
	Install:    install,
	Use:        use,
	Registries: findRegistries,
}

// grammar is a package's name with a version, a range of one clause or a tag. What npm
// takes for a file, an address, an alias or a repository has no place in it.
const (
	name    = `[A-Za-z0-9][A-Za-z0-9._-]*`
	version = `(?:\^|~|[<>]=?|=)?v?(?:[0-9]+|[xX*])(?:\.(?:[0-9]+|[xX*])){0,2}(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?`
	grammar = `^(?:@` + name + `/)?` + name + `(?:@(?:` + version + `|[A-Za-z][A-Za-z0-9._-]*))?$`
)

// check takes "name", "name@version" and "@scope/name@version".
var check = registries.Check("npm", grammar, "write it like lodash, react@18.2.0, chalk@^5 or @types/node@20, without spaces, paths or addresses",
	func(lower string) bool {
		return slices.ContainsFunc([]string{".tgz", ".tar.gz", ".tar"}, func(ending string) bool {
			return strings.HasSuffix(lower, ending) || strings.Contains(lower, ending+"@")
		})
	})

//go:embed resolve.cjs
var resolver []byte

//go:embed resolve.mjs
var threadResolver []byte

//go:embed local.cjs
var local []byte

// hook is the file of a library directory that lets import find what NODE_PATH names.
const hook = "resolve.cjs"

// install has npm install into src.Dir's node_modules.
func install(src language.InstallSource) (language.Plan, error) {
	config := path.Join(src.TempDir, ".install-npmrc")
	argv := []string{src.Program("npm"), "install", "--prefix", src.Dir, "--no-save", "--no-package-lock", "--no-audit", "--no-fund",
		"--no-update-notifier", "--no-progress", "--loglevel=error", "--cache", path.Join(src.TempDir, ".install-npm"), "--logs-max=0",
		"--globalconfig", path.Join(src.TempDir, ".install-global"), "--install-strategy=hoisted"}
	argv = append(append(argv, "--"), src.Libraries...)
	files := append([]language.File{{Path: path.Join(src.Dir, hook), Data: resolver, Mode: 0o644},
		{Path: path.Join(src.Dir, "resolve.mjs"), Data: threadResolver, Mode: 0o644}, {Path: config, Mode: 0o644}}, src.Registries.Files...)
	env := src.Registries.Env
	if src.Local != "" {
		env = []string{"npm_config_userconfig=" + config}
		script := path.Join(src.TempDir, ".install-local.cjs")
		files = append(files, language.File{Path: script, Data: local, Mode: 0o644})
		argv = append([]string{src.Program("node", "nodejs"), script, src.Local}, argv...)
	}
	return language.Plan{
		Files: files,
		Steps: []language.Step{{Argv: argv, Dir: src.Dir, Env: env}},
	}, nil
}

func use(dirs []string, current func(string) string) []string {
	options := strings.TrimSpace(current("NODE_OPTIONS") + " --require=" + path.Join(dirs[0], hook))
	return []string{
		registries.Prepend("PATH", dirs, "node_modules/.bin", current),
		registries.Prepend("NODE_PATH", dirs, "node_modules", current),
		"NODE_OPTIONS=" + options,
	}
}

// libraryName is the package that an entry of a list of libraries asks for.
func libraryName(canonical string) string {
	name := canonical
	if at := strings.LastIndexByte(name, '@'); at > 0 {
		name = name[:at]
	}
	return strings.ToLower(name)
}
