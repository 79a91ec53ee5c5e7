package micromamba

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"sync"
)

// What may be in a command line: nothing of it is an option, and nothing means anything
// to a shell that is started without quotes by mistake but < and >, which conda's own
// comparisons have.
const (
	namePattern    = `[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}`
	channelPattern = `[A-Za-z0-9_][A-Za-z0-9_./-]{0,199}`
	comparison     = `(?:==|>=|<=|!=|~=|=|<|>)`
	versionPattern = `[A-Za-z0-9_.*+!-]{1,64}`
)

var (
	nameRule    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^` + namePattern + `$`) })
	channelRule = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^` + channelPattern + `$`) })
	packageRule = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(?:` + channelPattern + `::)?(` + namePattern + `)` +
			`(?:` + comparison + versionPattern + `(?:[,|]` + comparison + `?` + versionPattern + `){0,8}(?:=` + versionPattern + `)?)?$`)
	})
)

// check fails for what is not well-formed.
func (m *Options) check() error {
	if !nameRule().MatchString(m.Env) {
		return fmt.Errorf("environment %q: its name is letters, digits, and _ . - after the first", m.Env)
	}
	for _, p := range m.Packages {
		if !packageRule().MatchString(p) {
			return fmt.Errorf("package %q is not named as conda does: use a name, or a name and a version like numpy=2.1 or numpy>=2,<3", p)
		}
	}
	for _, c := range m.Channels {
		if err := checkChannel(c); err != nil {
			return fmt.Errorf("channel %w", err)
		}
	}
	return nil
}

// packageName is the name in what names a package, which is well-formed.
func packageName(p string) string { return packageRule().FindStringSubmatch(p)[1] }

func checkChannel(c string) error {
	if channelRule().MatchString(c) {
		return nil
	}
	u, err := url.Parse(c)
	switch {
	case err != nil:
		return errors.New("that is no address: it cannot be read") // the words of err may hold a password
	case u.User != nil || strings.HasPrefix(u.Path, "/t/"):
		return fmt.Errorf("at %s: credentials would be in the image's history: configure them in the image you use", u.Host)
	case u.RawQuery != "" || u.Fragment != "" || strings.ContainsFunc(c, unprintable):
	case (u.Scheme == "http" || u.Scheme == "https") && u.Host != "":
		return nil
	case u.Scheme == "file" && u.Host == "" && strings.HasPrefix(u.Path, "/"):
		return nil
	}
	return fmt.Errorf("%q is no channel's name, and no address of http, https or file", c)
}

func unprintable(r rune) bool { return r <= ' ' || r > '~' }
