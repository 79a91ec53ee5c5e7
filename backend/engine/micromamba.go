package engine

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/engine/containers"
	"github.com/llmsandbox/llmsandbox/internal/engine/image"
	"github.com/llmsandbox/llmsandbox/internal/language"
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
var languages = []string{"bash", "c", "cpp", "go", "java", "javascript", "python", "r", "ruby", "typescript"}

// inMicromamba returns the options with Micromamba checked and an image for each language.
// What is named need not exist: that is found out when a sandbox is made.
func (o Options) inMicromamba() (Options, error) {
	m := *o.Micromamba
	m.Env = cmp.Or(m.Env, "base")
	m.Image = cmp.Or(m.Image, MicromambaImage)
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
func (o Options) install(lang string, own bool) []string {
	m := o.Micromamba
	own = own || o.Images[lang] != MicromambaImage
	packages := slices.Clone(m.Packages)
	if p := languagePackages[language.Family(lang)]; p != "" && !own && !slices.ContainsFunc(packages, func(s string) bool { return packageName(s) == p }) {
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

// preparedImages is the name of prepared images; their tags are digests of what they are
// made from.
const preparedImages = "llmsandbox-micromamba"

// prepared returns the image in which programs of the language are started in the
// environment. It is made from base unless that was done before.
func (b *Backend) prepared(ctx context.Context, spec backend.Spec, base image.Image) (image.Image, error) {
	m := b.options.Micromamba
	install := b.options.install(spec.Language, spec.Image != "" || b.options.Build != nil)
	tag, err := m.tag(base, install)
	if err != nil {
		return image.Image{}, err
	}
	img, err := b.images.Existing(ctx, tag)
	if errors.Is(err, backend.ErrImageNotFound) {
		img, err = b.prepareOnce(ctx, spec, base, install, tag)
	}
	if err != nil {
		return image.Image{}, fmt.Errorf("prepare %s in image %s: %w", m, base.Ref, err)
	}
	// It is known by the name that was asked for, and stays.
	img.Ref, img.Made = base.Ref, false
	return img, nil
}

// tag is the name of the image that is prepared from base.
func (m *Micromamba) tag(base image.Image, install []string) (string, error) {
	in, err := json.Marshal([]any{base.ID, user(backend.Spec{}, base), m.enter(), install})
	if err != nil {
		return "", fmt.Errorf("name the image of %s: %w", m, err)
	}
	sum := sha256.Sum256(in)
	return preparedImages + ":" + hex.EncodeToString(sum[:16]), nil
}

// prepareOnce prepares images one at a time: a caller that has waited finds the other's image.
func (b *Backend) prepareOnce(ctx context.Context, spec backend.Spec, base image.Image, install []string, tag string) (image.Image, error) {
	if err := b.preparing.Lock(ctx); err != nil {
		return image.Image{}, err
	}
	defer b.preparing.Unlock()
	img, err := b.images.Existing(ctx, tag)
	if errors.Is(err, backend.ErrImageNotFound) {
		return b.prepare(ctx, spec, base, install, tag)
	}
	return img, err
}

// prepare installs, enters the environment, and makes the image.
func (b *Backend) prepare(ctx context.Context, spec backend.Spec, base image.Image, install []string, tag string) (_ image.Image, err error) {
	from := base
	if len(install) > 0 {
		if from, err = b.install(ctx, spec, base, install); err != nil {
			return image.Image{}, err
		}
		// Only its name goes: its files are the prepared image's.
		defer func() {
			_, rerr := b.images.Remove(context.WithoutCancel(ctx), from)
			err = errors.Join(err, rerr)
		}()
	}
	guest := b.guest(backend.Spec{}, from)
	out, err := b.enterImage(ctx, from, guest.Env)
	if err != nil {
		return image.Image{}, err
	}
	img, err := b.images.Derive(ctx, image.Commit{Tag: tag, Base: from, Env: mergeEnv(from.Env, out)})
	if errors.Is(err, backend.ErrInvalid) { // another process may have been faster
		if other, oerr := b.images.Existing(ctx, tag); oerr == nil {
			return other, nil
		}
	}
	return img, err
}

// install makes an image of the base with what a program installs in it, as the base's
// own user.
func (b *Backend) install(ctx context.Context, spec backend.Spec, base image.Image, argv []string) (image.Image, error) {
	var content strings.Builder
	content.WriteString("FROM " + base.ID + "\nRUN ")
	run := json.NewEncoder(&content)
	run.SetEscapeHTML(false) // it is shown as progress
	if err := run.Encode(argv); err != nil {
		return image.Image{}, err
	}
	return b.images.Build(ctx, image.Build{Content: content.String()}, spec.Progress)
}

// maxVariables bounds what an environment may print before its variables, and these.
const maxVariables = 256 << 10

var errTooMuch = errors.New("it prints more than 256 KiB before and with its variables")

// probe is the program that prints the variables in an environment, after a mark: what
// scripts of the environment print themselves comes before it.
func (m *Micromamba) probe(mark string) []string {
	return append(m.enter(), "sh", "-c", "echo $0; exec env -0", mark)
}

// enterImage returns the variables that entering the environment changes, in a container
// that is confined like a sandbox.
func (b *Backend) enterImage(ctx context.Context, img image.Image, env []string) ([]string, error) {
	e := b.options.Micromamba
	mark := newMark()
	c := neverStarted(img.ID)
	c.Entrypoint, c.Cmd, c.Env, c.User, c.WorkingDir = e.probe(mark), []string{}, env, user(backend.Spec{}, img), "/"
	c.AttachStdout, c.AttachStderr = true, true
	c.Healthcheck = &container.HealthConfig{Test: []string{"NONE"}}
	h := &container.HostConfig{
		NetworkMode: "none", ReadonlyRootfs: true, CapDrop: []string{"ALL"}, SecurityOpt: []string{"no-new-privileges"},
		Tmpfs: map[string]string{defaultWorkdir: tmpfs(0), tempDir: tmpfs(0)},
	}
	if b.flavor.TmpfsOwner {
		giveTmpfs(backend.Spec{}, h, c.User)
	}
	if b.flavor.Adjust != nil {
		b.flavor.Adjust(c, h)
	}
	out, err := b.runToEnd(ctx, c, h)
	if err != nil {
		return nil, fmt.Errorf("enter it with %s: %w", strings.Join(e.enter(), " "), err)
	}
	return changed(env, out, mark)
}

// enterContainer adds what entering the environment changes in an existing container.
// What it writes goes to place, since the sandbox's own directory is not there yet.
func (b *Backend) enterContainer(ctx context.Context, id, place string, g *backend.Guest) error {
	e := b.options.Micromamba
	mark := newMark()
	env := mergeEnv(g.Env, []string{"HOME=" + place, "TMPDIR=" + place})
	out, err := b.output(ctx, id, maxVariables+1, env, nil, e.probe(mark)...)
	if err != nil {
		return fmt.Errorf("enter %s: %w", e, err)
	}
	vars, err := changed(env, out, mark)
	if err == nil && len(out) > maxVariables {
		err = errTooMuch
	}
	if err != nil {
		return fmt.Errorf("enter %s: %w", e, err)
	}
	g.Env = mergeEnv(g.Env, vars)
	return nil
}

func newMark() string { return "variables-" + strings.ToLower(rand.Text()) }

// runToEnd runs a container that is removed afterwards, and returns what it printed.
func (b *Backend) runToEnd(ctx context.Context, c *container.Config, h *container.HostConfig) (out []byte, err error) {
	err = b.inContainer(ctx, c, h, func(id string) error {
		at, err := b.client.ContainerAttach(ctx, id, client.ContainerAttachOptions{Stream: true, Stdout: true, Stderr: true})
		if err != nil {
			return b.explain("take the container's output", err)
		}
		defer at.Close()
		stop := context.AfterFunc(ctx, func() { at.Close() })
		defer stop()
		if _, err := b.client.ContainerStart(ctx, id, client.ContainerStartOptions{}); err != nil {
			return b.explain("start "+c.Entrypoint[0]+", which must be on the image's PATH", err)
		}
		s := newStream(at.HijackedResponse)
		out, err = io.ReadAll(io.LimitReader(s, maxVariables+1))
		if err == nil && len(out) > maxVariables {
			err = errTooMuch
		}
		if err != nil {
			return fmt.Errorf("read what %s prints: %w", c.Entrypoint[0], err)
		}
		r := <-containers.Wait(ctx, b.client, id, waitNotRunning)
		if r.Err != nil {
			return b.explain("wait for "+c.Entrypoint[0], r.Err)
		}
		if r.Code != 0 {
			return fmt.Errorf("%s ended with %d: %q", c.Entrypoint[0], r.Code, s.Said()+string(out))
		}
		return nil
	})
	return out, err
}

// ofProcess are the variables that are of one process, or that an engine gives each
// container.
var ofProcess = map[string]bool{
	"_": true, "PWD": true, "OLDPWD": true, "SHLVL": true, "HOSTNAME": true, "TERM": true, "container": true,
}

// changed returns the variables after the mark that are not among those before.
func changed(before []string, out []byte, mark string) ([]string, error) {
	_, list, found := bytes.Cut(out, []byte(mark+"\n"))
	if !found {
		return nil, errors.New("it ended well without having started the program")
	}
	was := map[string]bool{}
	for _, kv := range before {
		was[kv] = true
	}
	var vars []string
	for kv := range strings.SplitSeq(string(list), "\x00") {
		name, _, ok := strings.Cut(kv, "=")
		if ok && name != "" && !ofProcess[name] && !was[kv] {
			vars = append(vars, kv)
		}
	}
	return vars, nil
}
