// Package micromamba makes Micromamba environments what sandboxes on container engines
// run in.
package micromamba

import (
	"fmt"
	"slices"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/backend/engine"
)

// DefaultImage has Micromamba and an environment named base with nothing in it.
const DefaultImage = "mambaorg/micromamba:2.5.0-debian12-slim"

// repository is the name of prepared images.
const repository = "llmsandbox-micromamba"

// Options say which environment is used and what is in it. The zero value is base of
// [DefaultImage].
type Options struct {
	// Env is the environment's name; "" means base. The image must have it.
	Env string
	// Image is the image of all languages that engine.Options.Images names none for; ""
	// is DefaultImage, into which the sandbox's language is installed, too. The program
	// micromamba must be on its PATH.
	Image string
	// Packages are installed into the environment, each as conda names it: numpy,
	// numpy=2.1, "numpy>=2,<3", conda-forge::numpy. Not with engine.Options.Container.
	Packages []string
	// Channels are where packages are looked for, best first: names, addresses of
	// http, https or file, without credentials. None means conda-forge.
	Channels []string
}

// languagePackages are what DefaultImage lacks for a language.
var languagePackages = map[string]string{
	"cpp": "gxx", "go": "go", "java": "openjdk", "javascript": "nodejs", "python": "python", "r": "r-base", "ruby": "ruby",
}

// languages are all that engine.Options.Images can be asked for.
var languages = []string{"bash", "cpp", "go", "java", "javascript", "python", "r", "ruby"}

// Apply has sandboxes run in the environment. It fails with backend.ErrInvalid, and
// changes nothing then, for names that are not well-formed and options that exclude each
// other. What is named need not exist: that is found out when a sandbox is made.
func Apply(o *engine.Options, m Options) error {
	if m.Env == "" {
		m.Env = "base"
	}
	if err := m.check(); err != nil {
		return fmt.Errorf("%w: Micromamba: %w", backend.ErrInvalid, err)
	}
	if o.Container != "" && len(m.Packages) > 0 {
		return fmt.Errorf("%w: Micromamba: packages are installed when an image is prepared, not into an existing container: leave them out", backend.ErrInvalid)
	}
	images := map[string]string{}
	for _, l := range languages {
		images[l] = m.Image
		if m.Image == "" {
			images[l] = DefaultImage
		}
		if own := o.Images[l]; own != "" {
			images[l] = own
		}
	}
	m.Packages, m.Channels = slices.Clone(m.Packages), slices.Clone(m.Channels)
	o.Environment = &engine.Environment{
		Name: "Micromamba environment " + m.Env, Repository: repository,
		Enter: []string{"micromamba", "run", "-n", m.Env},
		Install: func(language string, own bool) []string {
			return m.install(language, own || images[language] != DefaultImage)
		},
	}
	o.Images = images
	return nil
}

// install is the command that installs what a sandbox of a language has; nil for nothing.
func (m *Options) install(language string, own bool) []string {
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
