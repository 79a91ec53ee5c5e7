package layers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/environ"
	"github.com/llmsandbox/llmsandbox/internal/errclass"
	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/tarcheck"
	"github.com/llmsandbox/llmsandbox/internal/transfer"
)

// Options say how libraries are installed.
type Options struct {
	Offline bool   // use only what is cached or in Local
	Local   string // a directory of this machine to install from
	Timeout time.Duration
}

// DefaultTimeout is what a zero Options.Timeout means.
const DefaultTimeout = 10 * time.Minute

const (
	// libraryVersion changes when the same list gives another layer.
	libraryVersion = 2
	// maxLibraries bounds one list.
	maxLibraries = 256
	// libraryName is followed by a layer's key.
	libraryName = ".llmsandbox-lib-"
	tempDir     = "/tmp"
)

// libraryDir is a library's directory below one for temporary files. Where sandboxes have file systems of their own, its path is the
// same in the sandbox that installs and in all that use it, since tools write it into files.
func libraryDir(temp, key string) string { return path.Join(temp, libraryName+key) }

// tempOf is the directory below which a sandbox has libraries that are not mounted.
func tempOf(g backend.Guest) string {
	if g.Host {
		return g.TempDir
	}
	return tempDir // of an existing container, too, whose sandboxes have each another one
}

// Libraries are a list of them on its way to a layer.
type Libraries struct {
	maker     Maker
	layers    backend.Layers
	language  *language.Language
	libraries []string // canonical, sorted, without doubles
	options   Options
	spec      backend.Spec // Image, Language and Progress
	// environment is set when they are the packages of an environment.
	environment *environment
	heading     string // what is installed, in reports; "" is the libraries
	// on is the library directory of the environment that they are for; "" when there is none.
	on string
}

// Libraries checks a list before anything else is done for it. spec has the Image, Language and
// Progress of the sandbox that they are for.
func (m Maker) Libraries(lang *language.Language, libraries []string, o Options, spec backend.Spec) (*Libraries, error) {
	if lang.Libraries == nil {
		return nil, fmt.Errorf("install libraries: %w: %s has no way to: put what the code needs into the image or among its files", backend.ErrUnsupported, lang.Title)
	}
	if len(libraries) > maxLibraries {
		return nil, fmt.Errorf("install %d libraries: %w: a list has at most %d", len(libraries), backend.ErrInvalid, maxLibraries)
	}
	q := &Libraries{maker: m, language: lang, options: o, spec: spec}
	for _, name := range libraries {
		canonical, err := lang.Libraries.Check(name)
		if err != nil {
			return nil, errclass.Errorf(backend.ErrInvalid, "install libraries of %s: %w", lang.Title, err)
		}
		q.libraries = append(q.libraries, canonical)
	}
	slices.Sort(q.libraries)
	q.libraries = slices.Compact(q.libraries)
	return q.resolve()
}

// resolve fills in the defaults.
func (q *Libraries) resolve() (*Libraries, error) {
	switch o := q.options; {
	case o.Timeout < 0:
		return nil, fmt.Errorf("installation timeout of %v: %w: it is a positive duration, or 0 for %v", o.Timeout, backend.ErrInvalid, DefaultTimeout)
	case o.Timeout == 0:
		q.options.Timeout = DefaultTimeout
	}
	if q.maker.InPlace {
		return q, nil
	}
	var err error
	if q.layers, err = q.maker.Backend.Layers(); err != nil {
		return nil, fmt.Errorf("install libraries: %w", err)
	}
	return q, nil
}

// key names all that a layer depends on. Where its files came from is no part of it but for
// a local directory: a mirror has the same ones.
func (q *Libraries) key(fingerprint, local string) string {
	return layerKey(q.language.Name, struct {
		Version            int
		Lang, Print, Local string
		Libraries          []string
		Packages           []language.Package `json:",omitempty"`
		On                 string             `json:",omitempty"`
		Declaration        []byte             `json:",omitempty"` // says how libraries are installed
	}{libraryVersion, q.language.Name, fingerprint, local, q.libraries, q.environment.packages(), q.on, q.language.Declaration})
}

func (q *Libraries) about(key string) backend.LayerInfo {
	return backend.LayerInfo{Key: key, Language: q.language.Name, Environment: q.environment.name(), Libraries: q.libraries, Image: q.spec.Image}
}

// fail is an error of this request.
func (q *Libraries) fail(err error) error {
	return &Error{Language: q.language.Name, Libraries: q.libraries, Environment: q.environment.name(), Err: err}
}

// ErrInstall: libraries could not be installed.
var ErrInstall = errors.New("libraries could not be installed")

// An Error says why libraries could not be installed. It wraps ErrInstall, and Err if there
// is one.
type Error struct {
	Language  string
	Libraries []string // canonical, sorted
	// Environment is the name of the environment that they are; empty when they are none.
	Environment string
	// Status is what became of the package tool; empty when it did not come to run.
	Status string
	// Output are the package tool's own last lines.
	Output string
	// Err is the cause when it was not the package tool.
	Err error
}

// Error says what failed, why, and the tool's last lines.
func (e *Error) Error() string {
	var b strings.Builder
	what := strings.Join(e.Libraries, ", ")
	if e.Environment != "" {
		what = "environment " + e.Environment
	}
	fmt.Fprintf(&b, "%s: %s (%s)", ErrInstall, what, e.Language)
	switch {
	case e.Err != nil:
		fmt.Fprintf(&b, ": %v", e.Err)
	case e.Status != "":
		fmt.Fprintf(&b, ": the package tool ended as %s", e.Status)
	}
	if e.Output != "" {
		b.WriteString("; its last lines:\n" + e.Output)
	}
	return b.String()
}

// Unwrap makes errors.Is find ErrInstall and the cause.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{ErrInstall}
	}
	return []error{ErrInstall, e.Err}
}

// Why a request fails that may not go to the network.
var (
	errNotCached = errors.New("they are not in the cache, and the network is not to be used: install them once without --offline, or give a folder that has them")
	errNotSetUp  = errors.New("it is not installed here, and the network is not to be used: run `llmsandbox setup` with its name once, for the same backend and image")
)

// toolchain names what the libraries are installed for.
func (q *Libraries) toolchain(ctx context.Context) (string, error) {
	toolchain, err := q.layers.Toolchain(ctx, q.spec, q.language.Libraries.Program, q.installed())
	if err != nil {
		return "", fmt.Errorf("install libraries: %w", err)
	}
	if toolchain == "" {
		return "", q.fail(fmt.Errorf("%s is not in this place: %w: %s", q.language.Libraries.Program, language.ErrToolchain, q.language.Install))
	}
	return toolchain, nil
}

// digestLocal names the files of the local directory that is installed from; "" where there is none.
func (q *Libraries) digestLocal(ctx context.Context) (string, error) {
	if q.options.Local == "" || q.environment != nil { // its packages are the same wherever they come from
		return "", nil
	}
	digest, err := digestDir(ctx, q.options.Local)
	if err != nil {
		err = fmt.Errorf("folder of libraries: %w", err)
	}
	return digest, err
}

// layer returns the request's layer, and makes it where there is none yet.
func (q *Libraries) layer(ctx context.Context) (key, source string, err error) {
	toolchain, err := q.toolchain(ctx)
	if err != nil {
		return "", "", err
	}
	local, err := q.digestLocal(ctx)
	if err != nil {
		return "", "", err
	}
	key = q.key(toolchain, local)
	source, err = q.maker.once(ctx, key, q.spec.Progress, func(ctx context.Context, report func(backend.Progress)) (string, error) {
		q := *q
		q.spec.Progress = report
		return q.layers.Get(ctx, q.about(key), func(ctx context.Context, dir string) error {
			if q.options.Offline && q.options.Local == "" {
				if q.environment != nil {
					return q.fail(errNotSetUp)
				}
				return q.fail(errNotCached)
			}
			end := backend.BeginStep(q.spec.Progress, stageInstall, q.title())
			err := q.fill(ctx, key, dir)
			end(err)
			return err
		})
	})
	return key, source, err
}

// AddTo makes a sandbox that is yet to be opened have the libraries; a nil request has none.
// An environment is added first, and then what is for it.
func (q *Libraries) AddTo(ctx context.Context, spec *backend.Spec) error {
	if q == nil {
		return nil
	}
	key, source, err := q.layer(ctx)
	if err != nil {
		return err
	}
	q.mount(spec, key, source)
	return nil
}

// mount adds a layer to what a sandbox is opened with.
func (q *Libraries) mount(spec *backend.Spec, key, source string) {
	dir := libraryDir(tempDir, key)
	if stay(q.layers) {
		dir = source
	}
	spec.Layers = append(spec.Layers, backend.Layer{Source: source, Target: dir})
	if q.environment != nil {
		spec.Env = environ.AddMissing(spec.Env, q.language.Libraries.Environment.Env(dir))
		spec.Env = environ.Override(spec.Env, []string{environmentVariable + "=" + q.environment.name()})
	}
	dirs := append([]string{dir}, listedLibraries(spec.Env)...)
	spec.Env = environ.Override(spec.Env, []string{librariesVariable + "=" + strings.Join(dirs, ":")})
}

// Bounds of a directory that libraries are installed from.
const (
	maxLocalBytes = 2 << 30
	maxLocalFiles = 10_000
)

var localLimits = transfer.Options{MaxBytes: maxLocalBytes, MaxFiles: maxLocalFiles}

// digestDir names a directory's files by what they hold. Links below it are left out, as they
// are when it is copied.
func digestDir(ctx context.Context, dir string) (string, error) {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	var files, bytes int64
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		content := sha256.New()
		n, err := io.Copy(content, io.LimitReader(f, maxLocalBytes+1-bytes))
		if files, bytes = files+1, bytes+n; err == nil && (files > maxLocalFiles || bytes > maxLocalBytes) {
			err = fmt.Errorf("%s: %w: at most %d files and %d bytes", dir, tarcheck.ErrTooLarge, maxLocalFiles, int64(maxLocalBytes))
		}
		fmt.Fprintf(sum, "%q %x\n", filepath.ToSlash(name), content.Sum(nil))
		return err
	})
	if err == nil && files == 0 {
		err = fmt.Errorf("%s: %w: there is no file in it", dir, fs.ErrNotExist)
	}
	return hex.EncodeToString(sum.Sum(nil)), err
}
