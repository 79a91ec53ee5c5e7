package layers

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/environ"
	"github.com/llmsandbox/llmsandbox/internal/language"
)

// environmentVariable names the environment that a sandbox was opened with.
const environmentVariable = "SANDBOX_ENVIRONMENT"

// An environment is a locked list of packages. A nil one has no name and no packages.
type environment struct {
	title string
	list  []language.Package
}

func (e *environment) name() string {
	if e == nil {
		return ""
	}
	return e.title
}

func (e *environment) packages() []language.Package {
	if e == nil {
		return nil
	}
	return e.list
}

// Environment is a request for the layer of an environment with these packages, which are valid.
func (m Maker) Environment(lang *language.Language, name string, packages []language.Package, o Options, spec backend.Spec) (*Libraries, error) {
	if lang.Libraries == nil || lang.Libraries.Environment == nil {
		return nil, fmt.Errorf("environment %s: %w: environments are for Python: install libraries of %s with --lib or Options.Libraries", name, backend.ErrUnsupported, lang.Title)
	}
	q := &Libraries{maker: m, language: lang, options: o, spec: spec, environment: &environment{name, packages}}
	for _, p := range packages {
		q.libraries = append(q.libraries, p.Name+"=="+p.Version)
	}
	return q.resolve()
}

// title says what is installed.
func (q *Libraries) title() string {
	if q.environment != nil {
		return "environment " + q.environment.name()
	}
	return cmp.Or(q.heading, strings.Join(q.libraries, ", "))
}

// say reports a line as output of the installation.
func (q *Libraries) say(text string) {
	if text != "" && q.spec.Progress != nil {
		q.spec.Progress(backend.Progress{Stage: stageInstall, Message: q.title(), Output: text})
	}
}

// installed are the places whose changes have the libraries installed anew: an environment has
// nothing of them.
func (q *Libraries) installed() []string {
	if q.environment != nil || q.on != "" {
		return nil
	}
	return q.language.Libraries.Installed
}

// On has the libraries installed for a sandbox with this environment (see spec.Env), whose
// packages count as installed if they are of the same language.
func (q *Libraries) On(env []string) *Libraries {
	if dir := environmentOf(env); q != nil && !q.maker.InPlace && libraryLanguage(dir) == q.language.Name {
		q.on = dir
	}
	return q
}

// Layer returns the layer of the environment, and whether there is one already. It makes none, and
// asks for the toolchain, which may fetch an image, only if there is one of that name.
func (q *Libraries) Layer(ctx context.Context) (backend.LayerInfo, bool, error) {
	list, err := q.layers.List(ctx)
	list = slices.DeleteFunc(list, func(l backend.LayerInfo) bool { return l.Environment != q.environment.name() })
	if len(list) == 0 {
		return backend.LayerInfo{}, false, err
	}
	toolchain, err := q.toolchain(ctx)
	if errors.Is(err, language.ErrToolchain) {
		return backend.LayerInfo{}, false, nil
	}
	if err != nil {
		return backend.LayerInfo{}, false, err
	}
	key := q.key(toolchain, "")
	i := slices.IndexFunc(list, func(l backend.LayerInfo) bool { return l.Key == key })
	if i < 0 {
		return backend.LayerInfo{}, false, nil
	}
	return list[i], true, nil
}

// mountEnvironment gives the environment that the libraries are for to the sandbox that installs.
func (q *Libraries) mountEnvironment(ctx context.Context, spec *backend.Spec) error {
	if q.on == "" {
		return nil
	}
	key := libraryKey(q.on)
	source, err := q.layers.Get(ctx, backend.LayerInfo{Key: key}, func(context.Context, string) error { return backend.ErrLayerNotFound })
	if err != nil {
		return fmt.Errorf("use the sandbox's environment: %w", err)
	}
	base := &Libraries{layers: q.layers, language: q.language, environment: &environment{title: "base"}}
	base.mount(spec, key, source)
	return nil
}

// maxLockFile bounds what a package tool writes as a lock.
const maxLockFile = 1 << 20

// Lock has the package tool find the packages that the libraries need.
func (q *Libraries) Lock(ctx context.Context) (packages []language.Package, err error) {
	if q.language.Libraries.Environment == nil {
		return nil, fmt.Errorf("lock libraries of %s: %w: environments are for Python", q.language.Title, backend.ErrUnsupported)
	}
	if _, err := q.toolchain(ctx); err != nil {
		return nil, err
	}
	end := backend.BeginStep(q.spec.Progress, stageResolve, q.title())
	defer func() { end(err) }()
	err = q.inSandbox(ctx, job{name: "lock", stage: stageResolve, plan: q.language.Libraries.Environment.Lock, done: func(ctx context.Context, s Sandbox, target string) error {
		client, err := s.Client(ctx)
		if err != nil {
			return err
		}
		data, err := client.ReadAll(ctx, path.Join(target, language.LockName), maxLockFile)
		if err != nil {
			return fmt.Errorf("read the lock: %w", err)
		}
		if err := json.Unmarshal(data, &packages); err != nil {
			return fmt.Errorf("read the lock: %w", err)
		}
		return nil
	}})
	return packages, err
}

// environmentOf returns the library directory of the environment that a sandbox was opened with, or "".
func environmentOf(env []string) string {
	dirs := listedLibraries(env)
	if environ.Value(env, environmentVariable) == "" || len(dirs) == 0 {
		return ""
	}
	return dirs[len(dirs)-1] // it was the first one
}

// Names are the libraries in their canonical form, sorted.
func (q *Libraries) Names() []string { return q.libraries }
