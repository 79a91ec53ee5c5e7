package python

import (
	"cmp"
	_ "embed"
	"path"
	"slices"

	"github.com/BurntSushi/toml"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

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
