package declared

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/language/registries"
)

// The placeholders of the command that installs libraries, beside inTemp.
const (
	inTarget    = "target"    // the directory to install into
	inLibraries = "libraries" // what is to be installed, each a word
	inLibrary   = "library"   // one of them: the command is run for each
)

// libraries is how libraries are installed.
type libraries struct {
	Manager    string            `toml:"manager"`
	Programs   [][]string        `toml:"programs"`
	Install    []string          `toml:"install"`
	Env        map[string]string `toml:"env"`
	Separator  string            `toml:"separator"`
	Registries []string          `toml:"registries"`
}

// errLocal: a directory of libraries cannot be installed from.
var errLocal = errors.New("a language that a file declares is not installed from a local directory of libraries")

// grammar is what a library's name may be, whatever the language, beyond registries.Plain.
const grammar = `^[A-Za-z0-9@][A-Za-z0-9@._/:+=<>~^,!*-]*$`

// installer checks a declaration and makes the way to install.
func (d *libraries) installer(f *file) (*language.Libraries, error) {
	tools := &file{Programs: d.Programs}
	if d.Manager == "" || len(d.Manager) > 64 || !plainText(d.Manager) {
		return nil, wrong("libraries.manager", "name what installs libraries")
	}
	if err := tools.checkPrograms(); err != nil {
		return nil, wrong("libraries.programs", "list the programs that install, each as a list of alternatives")
	}
	words, err := parseWords("libraries.install", d.Install, inTarget, inLibraries, inLibrary, inTemp)
	if err != nil {
		return nil, err
	}
	program := tools.alternatives(d.Install[0])
	if program == nil {
		return nil, wrong("libraries.install", "%.80q is not among libraries.programs", d.Install[0])
	}
	all := slices.ContainsFunc(words, func(w word) bool { return w.has(inLibraries) })
	each := slices.ContainsFunc(words, func(w word) bool { return w.has(inLibrary) })
	if all == each {
		return nil, wrong("libraries.install", "use either {libraries}, or {library} in a command that is run for each")
	}
	if !slices.ContainsFunc(words, func(w word) bool { return w.has(inTarget) }) {
		return nil, wrong("libraries.install", "{target} is missing: libraries are installed into that directory")
	}
	use, err := d.use()
	if err != nil {
		return nil, err
	}
	var from language.Registries
	for _, url := range d.Registries {
		if _, err := registries.Add(&from, url); err != nil {
			return nil, wrong("libraries.registries", "%v", err)
		}
	}
	if len(from.Credentials) > 0 {
		return nil, wrong("libraries.registries", "leave credentials out of addresses: they would be in a file that others read")
	}
	return &language.Libraries{
		Program: f.Programs[0][0], Needs: d.Programs, Use: use, Check: registries.Check(d.Manager, grammar, "use letters, digits and the characters of versions", nil),
		Registries: func(ask language.Ask) (language.Registries, error) {
			r := from
			_, err := registries.Trust(&r, ask)
			return r, err
		},
		Install: func(src language.InstallSource) (language.Plan, error) {
			if src.Local != "" {
				return language.Plan{}, errLocal
			}
			plan := language.Plan{Files: src.Registries.Files}
			values := map[string]string{inTarget: src.Dir, inTemp: src.TempDir}
			lists := map[string][]string{inLibraries: src.Libraries}
			rounds := []string{""}
			if each {
				rounds = src.Libraries
			}
			for _, values[inLibrary] = range rounds {
				argv := fillAll(words, values, lists)
				argv[0] = src.Program(program...)
				plan.Steps = append(plan.Steps, language.Step{Argv: argv, Dir: src.TempDir, Env: src.Registries.Env})
			}
			return plan, nil
		},
	}, nil
}

// use makes the function that lets programs find libraries.
func (d *libraries) use() (func([]string, func(string) string) []string, error) {
	if len(d.Env) == 0 || len(d.Env) > maxList {
		return nil, wrong("libraries.env", "set the variables by which programs find libraries, such as PERL5LIB = \"{target}/lib/perl5\"")
	}
	separator := d.Separator
	switch {
	case separator == "":
		separator = ":"
	case len(separator) > 8 || !plainText(separator):
		return nil, wrong("libraries.separator", "%.20q is no separator of a search path", separator)
	}
	names := slices.Sorted(maps.Keys(d.Env))
	values := map[string]word{}
	for _, name := range names {
		if !validVariable(name) {
			return nil, wrong("libraries.env", "%.80q is no variable's name", name)
		}
		if err := checkWords("libraries.env."+name, []string{d.Env[name]}); err != nil {
			return nil, err
		}
		value, err := parseWord("libraries.env."+name, d.Env[name], inTarget)
		if err != nil {
			return nil, err
		}
		values[name] = value
	}
	return func(dirs []string, current func(string) string) []string {
		var env []string
		for _, name := range names {
			var list []string
			for _, dir := range dirs {
				list = append(list, values[name].fill(map[string]string{inTarget: dir}))
			}
			if now := current(name); now != "" {
				list = append(list, now)
			}
			env = append(env, name+"="+strings.Join(list, separator))
		}
		return env
	}, nil
}
