// Package debian installs packages of Debian, and of what is made like it, for languages
// whose libraries they are.
package debian

import (
	_ "embed"
	"path"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/language/registries"
)

// Libraries installs packages for C++ and Bash.
var Libraries = language.Libraries{
	Program:    "dpkg-deb",
	Installed:  []string{"/var/lib/dpkg/status"},
	Needs:      [][]string{{"apt-get"}, {"dpkg-deb"}, {"tar"}, {"find"}},
	Check:      check,
	Install:    install,
	Use:        use,
	Registries: findRegistries,
	Inside:     true,
}

// LinkFile is the file of a library directory with the compiler's options that link its
// libraries, for those of them that are needed.
const LinkFile = "link"

// check takes a package's name with a version behind an equals sign.
var check = registries.Check("Debian", `^[a-z0-9][a-z0-9.+-]*[a-z0-9+](?:=(?:[0-9]+:)?[0-9][A-Za-z0-9.+~-]*)?$`,
	"write it like libfmt-dev or jq=1.6-2.1, without spaces, paths or addresses", nil)

//go:embed libraries.sh
var installer []byte

// scratch is where apt keeps its lists and archives; its configuration names it.
const scratch = registries.Dir + "/apt"

// install unpacks the packages into src.Dir.
func install(src language.InstallSource) (language.Plan, error) {
	script := path.Join(src.TempDir, ".install.sh")
	local := "-"
	if src.Local != "" {
		local = src.Local
	}
	return language.Plan{
		Files: append([]language.File{{Path: script, Data: installer, Mode: 0o644}}, src.Registries.Files...),
		Steps: []language.Step{{
			Argv: append([]string{"sh", script, src.Dir, scratch, local}, src.Libraries...), Dir: src.TempDir,
			Env: append([]string{"APT_CONFIG=" + configFile, "DEBIAN_FRONTEND=noninteractive"}, src.Registries.Env...),
		}},
	}, nil
}

// use lets shells, compilers, loaders and pkg-config find what is in the directories.
func use(dirs []string, current func(string) string) []string {
	var env []string
	for _, list := range []struct {
		name    string
		subdirs []string
	}{
		{"PATH", []string{"usr/bin", "usr/sbin"}},
		{"CPATH", []string{"usr/include", "arch-include"}},
		{"LIBRARY_PATH", []string{"arch-lib", "usr/lib"}},
		{"LD_LIBRARY_PATH", []string{"arch-lib", "usr/lib"}},
		{"PKG_CONFIG_PATH", []string{"arch-lib/pkgconfig", "usr/lib/pkgconfig", "usr/share/pkgconfig"}},
		{"CMAKE_PREFIX_PATH", []string{"usr"}},
	} {
		value := current(list.name)
		for i := len(list.subdirs) - 1; i >= 0; i-- {
			now := value
			kv := registries.Prepend(list.name, dirs, list.subdirs[i], func(string) string { return now })
			value = kv[len(list.name)+1:]
		}
		env = append(env, list.name+"="+value)
	}
	return env
}

// LibraryName is a package's name without its version.
var LibraryName = registries.NameBefore("=")
