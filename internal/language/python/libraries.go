package python

import (
	_ "embed"
	"fmt"
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
