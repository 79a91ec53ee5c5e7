package llmsandbox

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/environments"
	"github.com/llmsandbox/llmsandbox/internal/language/all"
	"github.com/llmsandbox/llmsandbox/internal/layers"
)

// DataScience is the built-in environment for data analysis with Python: NumPy, pandas, SciPy,
// scikit-learn, Matplotlib, seaborn, Plotly, Requests, openpyxl, Pillow and SymPy.
const DataScience = environments.Default

// localName is the name of the backend whose sandboxes have all languages of this machine.
const localName = "local"

// environment is the request for the layer of the options' environment; nil: they name none.
func (o *Options) environment(maker layers.Maker, spec backend.Spec) (*layers.Libraries, error) {
	if o.Environment == "" {
		return nil, nil
	}
	lock, err := environments.Find(o.Environment)
	if err != nil {
		return nil, fmt.Errorf("open sandbox: %w", err)
	}
	if lock.Language != spec.Language && o.Image == "" && maker.Backend.Name() != localName {
		return nil, fmt.Errorf("open sandbox: environment %s: %w: it is for %s, and the default image of %s has no %s: name an image with both",
			o.Environment, ErrInvalid, lock.Language, spec.Language, lock.Language)
	}
	lang, err := all.Get(lock.Language)
	if err != nil {
		return nil, err
	}
	spec.Language = lang.Name
	return maker.Environment(lang, environments.Name(o.Environment), lock.Packages, layers.Options(o.Install), spec)
}

// LockEnvironment finds the exact versions of libraries, and of all packages that they need, for the
// backend and image of opts, and returns them as the content of a lock. Options.Environment takes
// the path of a file with it, on this and other machines. Nothing is installed. opts may be nil; of
// them Language, Backend, Image, Install and Progress count.
//
// It fails as [Sandbox.Install] does. Only Python has environments.
func LockEnvironment(ctx context.Context, libraries []string, opts *Options) ([]byte, error) {
	o := *cmp.Or(opts, &Options{})
	o.Libraries = libraries
	lang, err := o.language()
	if err != nil {
		return nil, err
	}
	if len(libraries) == 0 {
		return nil, fmt.Errorf("lock an environment: %w: it has no libraries", ErrInvalid)
	}
	b, err := backendOrDefault(o.Backend)
	if err != nil {
		return nil, err
	}
	list, err := newMaker(b).Libraries(lang, libraries, layers.Options(o.Install), backend.Spec{Image: o.Image, Language: lang.Name, Progress: o.Progress, Logger: o.Logger})
	if err != nil {
		return nil, err
	}
	packages, err := list.Lock(ctx)
	if err != nil {
		return nil, asInstallError(err)
	}
	lock, err := environments.New(lang.Name, list.Names(), packages)
	if err != nil {
		return nil, fmt.Errorf("lock an environment: %w", err)
	}
	return lock.Encode()
}

// An EnvironmentInfo describes an environment.
type EnvironmentInfo struct {
	Name     string `json:"name"`
	Language string `json:"language"`
	// Path is the file of its lock; empty: it is built in.
	Path string `json:"path,omitempty"`
	// Libraries are those that it was made for, sorted.
	Libraries []string `json:"libraries"`
	// Packages are these and all that they need, each as its ecosystem writes it, such as
	// "numpy==2.3.5"; more than once with different versions for different interpreters.
	Packages []string `json:"packages"`
	// Installed reports whether sandboxes with the options' backend and image can have it without installing
	// anything, and Size how much it takes, in bytes.
	Installed bool  `json:"installed"`
	Size      int64 `json:"size_bytes,omitempty"`
}

// Environments lists the environments: what is built in, and those whose locks lie in the
// user's configuration directory. opts may be nil; its Backend and Image say where an environment
// may be installed, and its Environment, if set, is the only one that is listed. A lock that is not
// valid ends it with an error.
func Environments(ctx context.Context, opts *Options) ([]EnvironmentInfo, error) {
	o := *cmp.Or(opts, &Options{})
	b, err := backendOrDefault(o.Backend)
	if err != nil {
		return nil, err
	}
	names := []string{o.Environment}
	if o.Environment == "" {
		if names, err = environments.Names(); err != nil {
			return nil, err
		}
	}
	var list []EnvironmentInfo
	for _, name := range names {
		info, err := environmentInfo(ctx, name, newMaker(b), o.Image)
		if err != nil {
			return nil, err
		}
		list = append(list, info)
	}
	return list, nil
}

func environmentInfo(ctx context.Context, name string, maker layers.Maker, image string) (EnvironmentInfo, error) {
	lock, err := environments.Find(name)
	if err != nil {
		return EnvironmentInfo{}, err
	}
	lang, err := all.Get(lock.Language)
	if err != nil {
		return EnvironmentInfo{}, err
	}
	info := EnvironmentInfo{Name: environments.Name(name), Language: lock.Language, Libraries: lock.Libraries}
	if info.Path, err = environments.Path(name); err != nil {
		return info, err
	}
	for _, p := range lock.Packages {
		info.Packages = append(info.Packages, p.Name+"=="+p.Version)
	}
	slices.Sort(info.Packages)
	request, err := maker.Environment(lang, info.Name, lock.Packages, layers.Options{}, backend.Spec{Image: image, Language: lang.Name})
	if err != nil {
		return info, err
	}
	layer, found, err := request.Layer(ctx)
	info.Installed, info.Size = found, layer.Size
	return info, err
}
