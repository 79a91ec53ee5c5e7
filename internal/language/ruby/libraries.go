package ruby

import (
	"path"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/language/registries"
)

var libraries = language.Libraries{
	Program:    "ruby",
	Installed:  []string{"lib/ruby/gems/*/specifications", "/var/lib/gems/*/specifications", "/usr/share/rubygems-integration/*/specifications"},
	Needs:      [][]string{{"gem"}},
	Check:      check,
	Install:    install,
	Use:        use,
	Registries: findRegistries,
}

// check takes "name" and "name:constraint", as the gem command does.
var check = registries.Check("RubyGems", `^[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?(?::(?:~>|>=|<=|!=|=|>|<)?[0-9]+(?:\.[0-9A-Za-z]+)*(?:-[0-9A-Za-z]+(?:[.-][0-9A-Za-z]+)*)?)?$`,
	"write it like rake, nokogiri:1.15.0 or rack:~>3.0, without spaces, paths or addresses",
	func(lower string) bool { return strings.HasSuffix(lower, ".gem") || strings.Contains(lower, ".gem:") })

// install has gem install into src.Dir.
func install(src language.InstallSource) (language.Plan, error) {
	config := gemrc
	var files []language.File
	argv := []string{src.Program("gem"), "install", "--config-file", config, "--install-dir", src.Dir, "--bindir", path.Join(src.Dir, "bin"),
		"--no-document", "--env-shebang", "--no-user-install"}
	dir := src.TempDir
	if src.Local != "" {
		// Neither an image's settings nor a user's.
		config = path.Join(src.TempDir, ".install-gemrc")
		files = []language.File{{Path: config, Data: []byte("---\n:verbose: true\n"), Mode: 0o644}}
		// gem finds gems, those depended on as well, in the directory that it is started in.
		argv, dir = append(argv, "--local"), src.Local
	}
	env := append([]string{"GEM_SPEC_CACHE=" + path.Join(src.TempDir, ".install-specs")}, src.Registries.Env...)
	return language.Plan{
		Files: append(files, src.Registries.Files...),
		Steps: []language.Step{
			{Argv: append(argv, src.Libraries...), Dir: dir, Env: env},
			// The archives are as large as what came out of them.
			{Argv: []string{"rm", "-rf", path.Join(src.Dir, "cache"), path.Join(src.Dir, "doc")}},
		},
	}, nil
}

func use(dirs []string, current func(string) string) []string {
	list := strings.Join(dirs, ":") + ":" + current("GEM_PATH") // an end in a colon stands for the usual directories
	return []string{registries.Prepend("PATH", dirs, "bin", current), "GEM_PATH=" + list}
}

// libraryName is the gem that an entry of a list of libraries asks for.
func libraryName(canonical string) string {
	name, _, _ := strings.Cut(canonical, ":")
	return strings.ToLower(name)
}
