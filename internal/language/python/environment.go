package python

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/BurntSushi/toml"

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

var (
	//go:embed wheels.py
	wheelsScript []byte

	wheelsInstaller = slices.Concat(layerScript, wheelsScript)
)

var wheels = &language.Packages{
	Lock: lockWheels, LockName: "pylock.toml", Read: readLock, Install: installWheel,
	Finish: []language.Finish{{
		Title: "fonts of matplotlib", Of: "matplotlib", Plan: findFonts,
		With: []string{"contourpy", "cycler", "fonttools", "kiwisolver", "numpy", "packaging", "pillow", "pyparsing", "python-dateutil", "six"},
	}},
}

// lockWheels has uv resolve the libraries.
func lockWheels(src language.InstallSource) (language.Plan, error) {
	return wheelsPlan(src, "lock", src.Libraries...), nil
}

// installWheel has uv install one wheel, whose digest it checks.
func installWheel(src language.InstallSource, p language.Package) (language.Plan, error) {
	return wheelsPlan(src, "install", append([]string{p.Name + "==" + p.Version}, p.SHA256...)...), nil
}

func findFonts(src language.InstallSource) (language.Plan, error) {
	return wheelsPlan(src, "fonts"), nil
}

func wheelsPlan(src language.InstallSource, command string, args ...string) language.Plan {
	script := path.Join(src.TempDir, ".wheels.py")
	// uv keeps below .install what an installation of the whole list can use, too.
	argv := []string{src.Program("python3", "python"), "-B", script, command, src.Dir, path.Join(src.TempDir, ".install"), src.Accelerator}
	plan := pipPlan(src, argv, args)
	plan.Files = append(plan.Files, language.File{Path: script, Data: wheelsInstaller, Mode: 0o644})
	return plan
}

// maxLocked bounds how many packages a lock has.
const maxLocked = 1000

// readLock reads a pylock.toml. It returns no packages if there is one that is no wheel of a known
// digest, or has no valid name. Large wheels come first, since they take the longest.
func readLock(data []byte) ([]language.Package, error) {
	var lock struct {
		Packages []struct {
			Name    string `toml:"name"`
			Version string `toml:"version"`
			Wheels  []struct {
				Size   int64             `toml:"size"`
				Hashes map[string]string `toml:"hashes"`
			} `toml:"wheels"`
		} `toml:"packages"`
	}
	if err := toml.Unmarshal(data, &lock); err != nil {
		return nil, err
	}
	if len(lock.Packages) > maxLocked {
		return nil, nil
	}
	sizes := map[string]int64{}
	var packages []language.Package
	for _, found := range lock.Packages {
		p := language.Package{Name: found.Name, Version: found.Version}
		for _, w := range found.Wheels {
			p.SHA256 = append(p.SHA256, w.Hashes["sha256"])
			sizes[p.Name] = max(sizes[p.Name], w.Size)
		}
		slices.Sort(p.SHA256)
		p.SHA256 = slices.Compact(p.SHA256)
		twice := slices.ContainsFunc(packages, func(o language.Package) bool { return o.Name == p.Name })
		if twice || len(p.SHA256) == 0 || checkPackage(p) != nil {
			return nil, nil
		}
		packages = append(packages, p)
	}
	slices.SortStableFunc(packages, func(a, b language.Package) int { return cmp.Compare(sizes[b.Name], sizes[a.Name]) })
	return packages, nil
}
