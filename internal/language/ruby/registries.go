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
