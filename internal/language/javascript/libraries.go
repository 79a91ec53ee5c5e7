package javascript

import (
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

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

// npmrc is where npm finds its registries in a sandbox.
const npmrc = registries.Dir + "/npmrc"

// findRegistries are the registry and those of scopes that npm is configured for on this
// machine, with the tokens that its files hold for them.
func findRegistries(ask language.Ask) (language.Registries, error) {
	var r language.Registries
	out, err := ask.Program("npm", "config", "ls", "-l", "--json")
	if err != nil {
		return r, fmt.Errorf("ask npm for its configuration: %w", err)
	}
	var config map[string]any
	if err := json.Unmarshal(out, &config); err != nil {
		return r, fmt.Errorf("%w: npm's is not what it should be: %w", registries.ErrConfiguration, err)
	}
	text := func(name string) string {
		s, _ := config[name].(string)
		return s
	}
	var lines []string
	for _, key := range slices.Sorted(maps.Keys(config)) {
		if key != "registry" && !(strings.HasPrefix(key, "@") && strings.HasSuffix(key, ":registry")) {
			continue
		}
		if strings.ContainsAny(key, "\n=") {
			return r, fmt.Errorf("%w: npm's names the scope %q", registries.ErrConfiguration, key)
		}
		clean, err := registries.Add(&r, text(key))
		if err != nil {
			return r, fmt.Errorf("npm: %w", err)
		}
		lines = append(lines, key+"="+clean)
	}
	if strict, ok := config["strict-ssl"].(bool); ok && !strict {
		lines = append(lines, "strict-ssl=false")
	}
	for _, name := range []string{text("userconfig"), text("globalconfig")} {
		if err := credentials(&r, ask, name); err != nil {
			return r, err
		}
	}
	r.Files = []language.File{{Path: npmrc, Data: []byte(strings.Join(lines, "\n") + "\n"), Mode: 0o644}}
	trusted, err := registries.Trust(&r, ask, text("cafile"), ask.Env("NODE_EXTRA_CA_CERTS"))
	r.Env = []string{"npm_config_userconfig=" + npmrc}
	if trusted {
		r.Env = append(r.Env, "NODE_EXTRA_CA_CERTS="+registries.CA)
	}
	return r, err
}

// credentials takes what a file of npm's settings holds for each registry, which npm does
// not tell when it is asked: //host/path/:_authToken=…, :_auth=…, :username=… and :_password=….
func credentials(r *language.Registries, ask language.Ask, name string) error {
	if name == "" {
		return nil
	}
	data, err := ask.File(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w: npm's file: %w", registries.ErrConfiguration, err)
	}
	users, passwords := map[string]string{}, map[string]string{}
	for line := range strings.Lines(string(data)) {
		key, value, found := strings.Cut(strings.TrimSpace(line), "=")
		at := strings.LastIndexByte(key, ':')
		if !found || at < 0 || !strings.HasPrefix(key, "//") {
			continue
		}
		url, what := key[2:at], strings.TrimSpace(key[at+1:])
		value = expand(strings.Trim(strings.TrimSpace(value), `"'`), ask)
		switch what {
		case "_authToken":
			header(r, url, "Bearer "+value)
		case "_auth":
			header(r, url, "Basic "+value)
		case "username":
			users[url] = value
		case "_password":
			plain, err := base64.StdEncoding.DecodeString(value)
			if err != nil {
				return fmt.Errorf("%w: npm's password for a registry is not in base64", registries.ErrConfiguration)
			}
			passwords[url] = string(plain)
		}
	}
	for url, user := range users {
		if password, ok := passwords[url]; ok {
			header(r, url, "Basic "+base64.StdEncoding.EncodeToString([]byte(user+":"+password)))
		}
	}
	return nil
}

// header notes a header for those registries that lie below an address without a scheme.
func header(r *language.Registries, below, value string) {
	for _, url := range r.URLs {
		_, rest, _ := strings.Cut(url, "://")
		if strings.HasPrefix(strings.TrimSuffix(rest, "/")+"/", strings.TrimSuffix(below, "/")+"/") {
			registries.Header(r, url, "Authorization", value)
		}
	}
}

var variable = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\??\}`) })

// expand puts in the environment variables that npm's files may name.
func expand(value string, ask language.Ask) string {
	return variable().ReplaceAllStringFunc(value, func(m string) string { return ask.Env(variable().FindStringSubmatch(m)[1]) })
}
