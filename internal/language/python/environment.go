package python

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

var (
	//go:embed environment.py
	environmentScript []byte

	environmentInstaller = slices.Concat(layerScript, environmentScript)
)

// installEnvironment makes src.Dir a virtual environment that has the packages for its interpreter.
func installEnvironment(src language.InstallSource, packages []language.Package) (language.Plan, error) {
	lock, err := json.Marshal(packages)
	if err != nil {
		return language.Plan{}, err
	}
	file := path.Join(src.TempDir, ".lock.json")
	plan := environmentPlan(src, "install", file)
	plan.Files = append(plan.Files, language.File{Path: file, Data: lock, Mode: 0o644})
	return plan, nil
}

// lock has pip resolve the libraries, without any that the interpreter has already.
func lock(src language.InstallSource) (language.Plan, error) {
	return environmentPlan(src, "lock", src.Libraries...), nil
}

func environmentPlan(src language.InstallSource, command string, args ...string) language.Plan {
	script := path.Join(src.TempDir, ".environment.py")
	argv := []string{src.Program("python3", "python"), "-B", script, command, src.Dir, path.Join(src.TempDir, ".environment"), src.Accelerator}
	plan := pipPlan(src, argv, args)
	plan.Files = append(plan.Files, language.File{Path: script, Data: environmentInstaller, Mode: 0o644})
	return plan
}

// A virtual environment's interpreter would still see what PYTHONPATH names.
func environmentVariables(dir string) []string {
	return []string{"VIRTUAL_ENV=" + dir, "PYTHONPATH="}
}

var packageGrammar = sync.OnceValue(func() (g struct{ python, digest *regexp.Regexp }) {
	g.python = regexp.MustCompile(`^3\.(?:0|[1-9][0-9]?)$`)
	g.digest = regexp.MustCompile(`^[0-9a-f]{64}$`)
	return g
})

// checkPackage takes a canonical name and one exact version.
func checkPackage(p language.Package) error {
	spec := p.Name + "==" + p.Version
	if canonical, err := check(spec); err != nil || canonical != spec || strings.ContainsAny(p.Name, "[=<>!~") || strings.ContainsAny(p.Version, "*,") {
		return fmt.Errorf("package %q in version %q: %w: use a name such as scikit-learn and a version such as 1.2.3", p.Name, p.Version, language.ErrInvalidLibrary)
	}
	for _, version := range p.Python {
		if !packageGrammar().python.MatchString(version) {
			return fmt.Errorf("package %s: Python %q: %w: use a version such as 3.12", p.Name, version, language.ErrInvalidLibrary)
		}
	}
	for _, digest := range p.SHA256 {
		if !packageGrammar().digest.MatchString(digest) {
			return fmt.Errorf("package %s: sha256 %q: %w: use 64 hexadecimal digits", p.Name, digest, language.ErrInvalidLibrary)
		}
	}
	return nil
}
