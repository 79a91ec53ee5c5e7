package engine

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/llmsandbox/llmsandbox/backend"
)

// MicromambaImage has Micromamba and an environment named base with nothing in it.
const MicromambaImage = "mambaorg/micromamba:2.5.0-debian12-slim"

// Micromamba says which of Micromamba's environments programs are started in, and what is
// in it. The zero value is base of [MicromambaImage].
//
// An environment is entered once for an image, in a container that ends with it. What that
// changed of the variables is part of an image prepared from the first, so that programs
// in sandboxes are started as everywhere: how they end and what they print is their own,
// and entering costs them nothing.
//
// Prepared images stay, and the images that they are made from, for the next sandbox.
type Micromamba struct {
	// Env is the environment's name; "" means base. The image must have it.
	Env string
	// Image is the image of all languages that Options.Images names none for; "" is
	// MicromambaImage, into which the sandbox's language is installed, too. The program
	// micromamba must be on its PATH.
	Image string
	// Packages are installed into the environment, each as conda names it: numpy,
	// numpy=2.1, "numpy>=2,<3", conda-forge::numpy. Not with Options.Container.
	Packages []string
	// Channels are where packages are looked for, best first: names, addresses of
	// http, https or file, without credentials. None means conda-forge.
	Channels []string
}

// languagePackages are what MicromambaImage lacks for a language.
var languagePackages = map[string]string{
	"cpp": "gxx", "go": "go", "java": "openjdk", "javascript": "nodejs", "python": "python", "r": "r-base", "ruby": "ruby",
}

// languages are all that Options.Images can be asked for.
var languages = []string{"bash", "cpp", "go", "java", "javascript", "python", "r", "ruby"}

// inMicromamba returns the options with Micromamba checked and an image for each language.
// What is named need not exist: that is found out when a sandbox is made.
func (o Options) inMicromamba() (Options, error) {
	m := *o.Micromamba
	if m.Env == "" {
		m.Env = "base"
	}
	if m.Image == "" {
		m.Image = MicromambaImage
	}
	if err := m.check(); err != nil {
		return o, fmt.Errorf("%w: Micromamba: %w", backend.ErrInvalid, err)
	}
	if o.Container != "" && len(m.Packages) > 0 {
		return o, fmt.Errorf("%w: Micromamba: packages are installed when an image is prepared, not into an existing container: leave them out", backend.ErrInvalid)
	}
	images := map[string]string{}
	for _, l := range languages {
		if images[l] = o.Images[l]; images[l] == "" {
			images[l] = m.Image
		}
	}
	m.Packages, m.Channels = slices.Clone(m.Packages), slices.Clone(m.Channels)
	o.Micromamba, o.Images = &m, images
	return o, nil
}

// String is for errors.
func (m *Micromamba) String() string { return "Micromamba environment " + m.Env }

// enter is put before a program to start it in the environment.
func (m *Micromamba) enter() []string { return []string{"micromamba", "run", "-n", m.Env} }

// install is the command that an image is prepared with first, with the engine's own
// network; nil for none. own says that the sandbox names or builds its image.
func (o Options) install(language string, own bool) []string {
	m := o.Micromamba
	own = own || o.Images[language] != MicromambaImage
	packages := slices.Clone(m.Packages)
	if p := languagePackages[language]; p != "" && !own && !slices.ContainsFunc(packages, func(s string) bool { return packageName(s) == p }) {
		packages = append(packages, p)
	}
	if len(packages) == 0 {
		return nil
	}
	slices.Sort(packages) // the same list in another order is the same image
	argv := []string{"micromamba", "install", "-y", "-n", m.Env}
	channels := m.Channels
	if len(channels) == 0 {
		channels = []string{"conda-forge"}
	}
	for _, c := range channels {
		argv = append(argv, "-c", c)
	}
	return append(argv, slices.Compact(packages)...)
}

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
func (m *Micromamba) check() error {
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
		return errors.New("that is no address: it cannot be read") // the text of err may hold a password
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
