// Package debian installs packages of Debian, and of what is made like it, for languages
// whose libraries they are.
package debian

import (
	"bytes"
	_ "embed"
	"fmt"
	"path"
	"regexp"
	"strings"
	"sync"

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

// Where apt finds its configuration in a sandbox.
const (
	configFile = registries.Dir + "/apt.conf"
	sourcesDir = registries.Dir + "/sources.list.d"
	keysDir    = registries.Dir + "/trusted.gpg.d"
	statusFile = registries.Dir + "/status"
)

// config keeps apt off the place's own settings, some of which need root or throw away
// what was downloaded. Signatures are checked as ever.
const config = `Dir::Etc::Main "/dev/null";
Dir::Etc::Parts "/dev/null";
Dir::Etc::SourceList "/dev/null";
Dir::Etc::SourceParts "` + sourcesDir + `";
Dir::Etc::Preferences "/dev/null";
Dir::Etc::PreferencesParts "/dev/null";
Dir::Etc::Trusted "/dev/null";
Dir::Etc::TrustedParts "` + keysDir + `";
Dir::State "` + scratch + `/state";
Dir::State::Status "` + statusFile + `";
Dir::Cache "` + scratch + `/cache";
Dir::Log "` + scratch + `";
Debug::NoLocking "true";
APT::Sandbox::User "";
APT::Get::Assume-Yes "true";
APT::Install-Recommends "false";
APT::Cmd::Pattern-Only "true";
Acquire::Languages "none";
Acquire::Retries "2";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled "false";
`

// installed prints what is installed, in the format of apt's status file, without what
// an installation does not need.
const installed = "Package: ${Package}\nStatus: ${Status}\nArchitecture: ${Architecture}\nVersion: ${Version}\nMulti-Arch: ${Multi-Arch}\nProvides: ${Provides}\n\n"

// ownKeys are directories of keys that a sandbox does not have where it has the host's system.
var ownKeys = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`/etc/apt/[A-Za-z0-9._/-]+\.(?:gpg|asc)`) })

// findRegistries are the sources of apt where it is asked, with the keys they are signed by
// and the list of what is installed there.
func findRegistries(ask language.Ask) (language.Registries, error) {
	var r language.Registries
	// Not indextargets, which lists only what was fetched: images have nothing of it.
	out, err := ask.Program("apt-get", "update", "--print-uris", "-o", "Debug::NoLocking=true", "-o", "Dir::State::lists=/nonexistent")
	if err != nil {
		return r, fmt.Errorf("ask apt for its sources: %w", err)
	}
	for line := range strings.Lines(string(out)) {
		// 'ADDRESS' FILE SIZE
		address, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "'"), "'")
		base, ok := strings.CutSuffix(address, "/InRelease")
		if !ok {
			continue
		}
		if i := strings.LastIndex(base, "/dists/"); i >= 0 {
			base = base[:i+1]
		}
		if _, err := registries.Add(&r, base); err != nil {
			return r, fmt.Errorf("apt: %w", err)
		}
	}
	switch {
	case len(r.URLs) == 0:
		return r, fmt.Errorf("%w: apt has no sources", registries.ErrConfiguration)
	case len(r.Credentials) > 0:
		return r, fmt.Errorf("%w: a source of apt has a password in its address, which is not let into a sandbox", registries.ErrConfiguration)
	}
	r.Files = []language.File{{Path: configFile, Data: []byte(config), Mode: 0o644}}
	if err := copySources(&r, ask); err != nil {
		return r, err
	}
	if err := copyKeys(&r, ask); err != nil {
		return r, err
	}
	out, err = ask.Program("dpkg-query", "--show", "--showformat", installed)
	if err != nil {
		return r, fmt.Errorf("ask what is installed: %w", err)
	}
	r.Files = append(r.Files, language.File{Path: statusFile, Data: withoutEmpty(out), Mode: 0o644})
	trusted, err := registries.Trust(&r, ask)
	if trusted {
		r.Files[0].Data = append(r.Files[0].Data, "Acquire::https::CAInfo \""+registries.CA+"\";\n"...)
	}
	return r, err
}

// copySources takes the sources as they are written, but for where keys lie.
func copySources(r *language.Registries, ask language.Ask) error {
	out, err := ask.Program("find", "/etc/apt", "-maxdepth", "2", "-type", "f",
		"(", "-path", "/etc/apt/sources.list", "-o", "-path", "/etc/apt/sources.list.d/*.list", "-o", "-path", "/etc/apt/sources.list.d/*.sources", ")")
	if err != nil {
		return fmt.Errorf("look for apt's sources: %w", err)
	}
	keys := map[string]bool{}
	for _, file := range strings.Fields(string(out)) {
		text, err := ask.File(file)
		if err != nil {
			return fmt.Errorf("read apt's sources: %w", err)
		}
		text = ownKeys().ReplaceAllFunc(text, func(name []byte) []byte {
			keys[string(name)] = true
			return []byte(path.Join(keysDir, path.Base(string(name))))
		})
		name := path.Base(file)
		if name == "sources.list" {
			name = "main.list"
		}
		r.Files = append(r.Files, language.File{Path: path.Join(sourcesDir, name), Data: text, Mode: 0o644})
	}
	for name := range keys {
		if err := copyKey(r, ask, name); err != nil {
			return err
		}
	}
	return nil
}

// copyKeys takes the keys that all sources may be signed by.
func copyKeys(r *language.Registries, ask language.Ask) error {
	out, err := ask.Program("find", "/etc/apt", "-maxdepth", "2", "(", "-path", "/etc/apt/trusted.gpg", "-o", "-path", "/etc/apt/trusted.gpg.d/*.gpg", "-o", "-path", "/etc/apt/trusted.gpg.d/*.asc", ")")
	if err != nil {
		return fmt.Errorf("look for apt's keys: %w", err)
	}
	for _, file := range strings.Fields(string(out)) {
		if err := copyKey(r, ask, file); err != nil {
			return err
		}
	}
	return nil
}

func copyKey(r *language.Registries, ask language.Ask, file string) error {
	data, err := ask.File(file)
	if err != nil {
		return fmt.Errorf("read apt's keys: %w", err)
	}
	to := path.Join(keysDir, path.Base(file))
	for _, f := range r.Files {
		if f.Path == to {
			return nil
		}
	}
	if len(data) > 0 {
		r.Files = append(r.Files, language.File{Path: to, Data: data, Mode: 0o644})
	}
	return nil
}

// withoutEmpty leaves out fields that say nothing.
func withoutEmpty(status []byte) []byte {
	var out bytes.Buffer
	for line := range bytes.Lines(status) {
		if text := bytes.TrimSpace(line); len(text) == 0 || text[len(text)-1] != ':' {
			out.Write(line)
		}
	}
	return out.Bytes()
}
