package python

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/language/registries"
)

var libraries = language.Libraries{
	Program: "python3",
	// pip is run as a module of the interpreter; its command shows that it is there.
	Needs:      [][]string{{"python3", "python"}, {"pip3", "pip"}},
	Check:      check,
	Install:    install,
	Use:        use,
	Registries: findRegistries,

	// The options of these versions are known to do what the scripts want.
	Accelerator: &language.Accelerator{Program: "uv", Library: "uv>=0.8,<0.14", Install: fetchUV},
	Packages:    wheels,
	Environment: &language.Environment{Lock: lock, CheckPackage: checkPackage, Install: installEnvironment, Env: environmentVariables},
}

var (
	//go:embed layer.py
	layerScript []byte
	//go:embed libraries.py
	librariesScript []byte

	installer = slices.Concat(layerScript, librariesScript)
)

// install has pip install below src.Dir, which bin and site are then found in. What an image
// has counts as installed, since who chose the image chose that. What this machine happens to
// have does not: a list is the same libraries on every machine.
func install(src language.InstallSource) (language.Plan, error) {
	script := path.Join(src.TempDir, ".install.py")
	argv := []string{src.Program("python3", "python"), "-B", script, src.Dir, path.Join(src.TempDir, ".install"), src.Accelerator}
	switch {
	case src.On != "":
		argv = append(argv, "--no-warn-conflicts")
	case src.Host:
		argv = append(argv, "--ignore-installed", "--no-warn-conflicts")
	}
	plan := pipPlan(src, argv, src.Libraries)
	plan.Files = append(plan.Files, language.File{Path: script, Data: installer, Mode: 0o644})
	return plan, nil
}

// fetchUV has pip install uv, whose wheels are one program each. Nothing of it is built.
func fetchUV(src language.InstallSource) (language.Plan, error) {
	return pipPlan(src, []string{
		src.Program("python3", "python"), "-m", "pip", "install", "--target", src.Dir, "--no-deps", "--only-binary", ":all:", "--no-compile",
	}, src.Libraries), nil
}

// pipPlan runs pip, or a script that does: argv, options of pip, "--" and args.
func pipPlan(src language.InstallSource, argv, args []string) language.Plan {
	if src.Local != "" {
		argv = append(argv, "--no-index", "--find-links", src.Local)
	}
	return language.Plan{
		Files: slices.Clone(src.Registries.Files),
		Steps: []language.Step{{Argv: append(append(argv, "--"), args...), Dir: src.TempDir, Env: append([]string{
			// No configuration of an image is read, and no user can answer questions.
			"PIP_CONFIG_FILE=/dev/null", "PIP_NO_INPUT=1", "PIP_NO_CACHE_DIR=1", "PIP_DISABLE_PIP_VERSION_CHECK=1",
			"PIP_PROGRESS_BAR=off", "PYTHONDONTWRITEBYTECODE=1",
		}, src.Registries.Env...)}},
	}
}

func use(dirs []string, current func(string) string) []string {
	return []string{
		registries.Prepend("PATH", dirs, "bin", current),
		registries.Prepend("PYTHONPATH", dirs, "site", current),
	}
}

// grammar is a requirement of PEP 508 without what is no name and version: no address,
// no path, no marker, no spaces. Versions are those of PEP 440.
var grammar = sync.OnceValue(func() (g struct{ requirement, clause, arbitrary *regexp.Regexp }) {
	const name = `[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?`
	g.requirement = regexp.MustCompile(`^(` + name + `)(?:\[(` + name + `(?:,` + name + `)*)\])?((?:[=<>!~]=?=?[^=<>!~].*)?)$`)
	const version = `v?(?:[0-9]+!)?[0-9]+(?:\.[0-9]+)*(?:[-_.]?(?:alpha|a|beta|b|preview|pre|c|rc)[-_.]?[0-9]*)?` +
		`(?:-[0-9]+|[-_.]?(?:post|rev|r)[-_.]?[0-9]*)?(?:[-_.]?dev[-_.]?[0-9]*)?`
	g.clause = regexp.MustCompile(`^(?:(?:==|!=)` + version + `(?:\+[a-z0-9]+(?:[-_.][a-z0-9]+)*|\.\*)?|(?:~=|<=|>=|<|>)` + version + `)$`)
	g.arbitrary = regexp.MustCompile(`^===[A-Za-z0-9._+!*-]+$`)
	return g
})

// check takes "Name[extra,...]" with version clauses such as ">=1.0,<2".
func check(library string) (string, error) {
	if err := registries.Plain(library); err != nil {
		return "", err
	}
	m := grammar().requirement.FindStringSubmatch(library)
	if m == nil {
		return "", refusal(library)
	}
	canonical := normal(m[1])
	if m[2] != "" {
		extras := strings.Split(m[2], ",")
		for i, e := range extras {
			extras[i] = normal(e)
		}
		slices.Sort(extras)
		canonical += "[" + strings.Join(slices.Compact(extras), ",") + "]"
	}
	if m[3] == "" {
		return canonical, nil
	}
	clauses := strings.Split(m[3], ",")
	for i, c := range clauses {
		if grammar().arbitrary.MatchString(c) {
			continue
		}
		clauses[i] = strings.ToLower(c)
		if !grammar().clause.MatchString(clauses[i]) {
			return "", refusal(library)
		}
	}
	slices.Sort(clauses)
	return canonical + strings.Join(slices.Compact(clauses), ","), nil
}

func refusal(library string) error {
	return fmt.Errorf("library %q of Python: %w: write it like numpy, pandas>=2.0,<3 or requests[socks]==2.32.3, without spaces, paths or addresses",
		library, language.ErrInvalidLibrary)
}

// libraryName is the name that a requirement asks for.
func libraryName(canonical string) string {
	if n := strings.IndexAny(canonical, "[=<>!~; "); n >= 0 {
		canonical = canonical[:n]
	}
	return normal(canonical)
}

// normal is the one form of a name that ignores case and the differences between dashes,
// dots and underscores.
func normal(name string) string {
	name = strings.NewReplacer("_", "-", ".", "-").Replace(strings.ToLower(name))
	for strings.Contains(name, "--") {
		name = strings.ReplaceAll(name, "--", "-")
	}
	return name
}

// configuration asks pip for the index that it uses when nothing is configured, for the host that this index's files
// lie on, and for its settings in the order in which they count. It loads less of pip than its command does.
const configuration = `from pip._internal.configuration import Configuration
from pip._internal.models.index import PyPI
print(PyPI.simple_url, PyPI.file_storage_domain)
loaded = Configuration(isolated=False)
loaded.load()
for name, value in loaded.items():
    # In newer ones, these are files with their settings.
    for name, value in sorted(value.items()) if isinstance(value, dict) else [(name, value)]:
        print("%s=%r" % (name, value))
`

// findRegistries are the index, the further indexes and the pages of links that pip is
// configured for on this machine, by its files or its environment.
func findRegistries(ask language.Ask) (language.Registries, error) {
	out, unknown := run(ask, "-c", configuration)
	defaults, list, _ := strings.Cut(string(out), "\n")
	if unknown != nil { // a pip that is made otherwise, or whose configuration is broken
		out, err := run(ask, "-m", "pip", "config", "list")
		if err != nil {
			return language.Registries{}, fmt.Errorf("ask pip for its configuration: %w", err)
		}
		defaults, list = "", string(out)
	}
	var r language.Registries
	config := settings(list)
	index := config["index-url"]
	if index == "" {
		if unknown != nil {
			return r, fmt.Errorf("ask pip for its default index (or set PIP_INDEX_URL): %w", unknown)
		}
		fields := strings.Fields(defaults)
		if len(fields) != 2 {
			return r, fmt.Errorf("%w: pip does not tell its default index: set PIP_INDEX_URL", registries.ErrConfiguration)
		}
		index = fields[0]
		if _, err := registries.Add(&r, "https://"+fields[1]+"/"); err != nil {
			return r, err
		}
	}
	if err := add(&r, "PIP_INDEX_URL", index); err != nil {
		return r, err
	}
	if err := add(&r, "PIP_EXTRA_INDEX_URL", config["extra-index-url"]); err != nil {
		return r, err
	}
	// Links may also be directories of this machine, which a sandbox does not see.
	var links []string
	for _, link := range strings.Fields(config["find-links"]) {
		if u, err := url.Parse(link); err == nil && (u.Scheme == "http" || u.Scheme == "https") {
			links = append(links, link)
		}
	}
	if err := add(&r, "PIP_FIND_LINKS", strings.Join(links, " ")); err != nil {
		return r, err
	}
	for _, name := range []string{"trusted-host", "timeout", "retries", "prefer-binary", "only-binary", "no-binary"} {
		if v := config[name]; v != "" {
			r.Env = append(r.Env, "PIP_"+strings.ToUpper(strings.ReplaceAll(name, "-", "_"))+"="+strings.Join(strings.Fields(v), " "))
		}
	}
	if err := registries.Netrc(&r, ask); err != nil {
		return r, err
	}
	trusted, err := registries.Trust(&r, ask, config["cert"], ask.Env("REQUESTS_CA_BUNDLE"), ask.Env("CURL_CA_BUNDLE"))
	if trusted {
		r.Env = append(r.Env, "PIP_CERT="+registries.CA)
	}
	return r, err
}

// add puts addresses, without their credentials, into a variable of pip's.
func add(r *language.Registries, variable, addresses string) error {
	var clean []string
	for _, address := range strings.Fields(addresses) {
		c, err := registries.Add(r, address)
		if err != nil {
			return fmt.Errorf("pip: %w", err)
		}
		clean = append(clean, c)
	}
	if clean != nil {
		r.Env = append(r.Env, variable+"="+strings.Join(clean, " "))
	}
	return nil
}

// run runs the interpreter that pip belongs to.
func run(ask language.Ask, args ...string) ([]byte, error) {
	out, err := ask.Program(append([]string{"python3"}, args...)...)
	if errors.Is(err, fs.ErrNotExist) {
		out, err = ask.Program(append([]string{"python"}, args...)...)
	}
	return out, err
}

// settings reads a list of lines section.name='value'. What is set for one command comes before what is set for all,
// and the environment before both. Of two of one section, the last counts: that of a user comes after the machine's.
func settings(list string) map[string]string {
	config := map[string]string{}
	rank := map[string]int{}
	for line := range strings.Lines(list) {
		key, value, found := strings.Cut(strings.TrimSpace(line), "=")
		section, name, _ := strings.Cut(key, ".")
		at := map[string]int{"global": 1, "install": 2, ":env:": 3}[section]
		if found && at > 0 && at >= rank[name] {
			config[name], rank[name] = unquote(value), at
		}
	}
	return config
}

// unquote reads a string as Python's repr writes it.
func unquote(s string) string {
	if len(s) < 2 || s[0] != s[len(s)-1] || s[0] != '\'' && s[0] != '"' {
		return s
	}
	return strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\t`, "\t", `\'`, `'`, `\"`, `"`).Replace(s[1 : len(s)-1])
}
