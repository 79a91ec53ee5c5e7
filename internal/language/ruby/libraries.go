package ruby

import (
	"fmt"
	"net/netip"
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

// gemrc is where gem finds its sources in a sandbox.
const gemrc = registries.Dir + "/gemrc"

var authority = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^:ssl_ca_cert:\s*["']?([^"'\n]+?)["']?\s*$`) })

// addIndexes adds the hosts that gem asks in place of a source: it puts "index." before the name of
// its default one. Whoever has a source's name has those below it as well.
func addIndexes(r *language.Registries) error {
	for _, source := range slices.Clone(r.URLs) {
		u, err := url.Parse(source)
		if err != nil {
			return fmt.Errorf("gem: %w", err)
		}
		host := u.Hostname()
		if _, err := netip.ParseAddr(host); err == nil || !strings.Contains(host, ".") || u.Path != "/" && u.Path != "" {
			continue
		}
		u.Host = "index." + u.Host
		if _, err := registries.Add(r, u.String()); err != nil {
			return fmt.Errorf("gem: %w", err)
		}
	}
	return nil
}

// findRegistries are the sources that gem is configured for on this machine.
func findRegistries(ask language.Ask) (language.Registries, error) {
	var r language.Registries
	out, err := ask.Program("gem", "sources", "--list")
	if err != nil {
		return r, fmt.Errorf("ask gem for its sources: %w", err)
	}
	for line := range strings.Lines(string(out)) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "*") {
			continue
		}
		if _, err := registries.Add(&r, line); err != nil {
			return r, fmt.Errorf("gem: %w", err)
		}
	}
	if len(r.URLs) == 0 {
		return r, fmt.Errorf("%w: gem has no source: add one with gem sources --add", registries.ErrConfiguration)
	}
	lines := []string{"---", ":sources:"}
	for _, url := range r.URLs {
		lines = append(lines, fmt.Sprintf("- %q", url))
	}
	if err := addIndexes(&r); err != nil {
		return r, err
	}
	r.Files = []language.File{{Path: gemrc, Data: []byte(strings.Join(lines, "\n") + "\n"), Mode: 0o644}}
	configured := ""
	if own, err := ask.File(path.Join(ask.Home, ".gemrc")); err == nil {
		if m := authority().FindSubmatch(own); m != nil {
			configured = string(m[1])
		}
	}
	trusted, err := registries.Trust(&r, ask, configured)
	if trusted {
		r.Env = append(r.Env, "SSL_CERT_FILE="+registries.CA)
	}
	return r, err
}
