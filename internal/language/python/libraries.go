package python

import (
	_ "embed"
	"path"

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
}

//go:embed libraries.py
var installer []byte

// install has pip install below src.Dir, which bin and site are then found in. What an image
// has counts as installed, since who chose the image chose that. What this machine happens to
// have does not: a list is the same libraries on every machine.
func install(src language.InstallSource) (language.Plan, error) {
	script := path.Join(src.TempDir, ".install.py")
	argv := []string{src.Program("python3", "python"), "-B", script, src.Dir, path.Join(src.TempDir, ".install")}
	if src.Local != "" {
		argv = append(argv, "--no-index", "--find-links", src.Local)
	}
	if src.Host {
		argv = append(argv, "--ignore-installed", "--no-warn-conflicts")
	}
	argv = append(append(argv, "--"), src.Libraries...)
	return language.Plan{
		Files: append([]language.File{{Path: script, Data: installer, Mode: 0o644}}, src.Registries.Files...),
		Steps: []language.Step{{Argv: argv, Dir: src.TempDir, Env: append([]string{
			// No configuration of an image is read, and no user can answer questions.
			"PIP_CONFIG_FILE=/dev/null", "PIP_NO_INPUT=1", "PIP_NO_CACHE_DIR=1", "PIP_DISABLE_PIP_VERSION_CHECK=1",
			"PIP_PROGRESS_BAR=off", "PYTHONDONTWRITEBYTECODE=1",
		}, src.Registries.Env...)}},
	}, nil
}

func use(dirs []string, current func(string) string) []string {
	return []string{
		registries.Prepend("PATH", dirs, "bin", current),
		registries.Prepend("PYTHONPATH", dirs, "site", current),
	}
}
