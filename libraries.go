package llmsandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/language/all"
)

// InstallOptions say how libraries are installed. The zero value installs from the
// registries that this machine's package tools are configured for.
type InstallOptions struct {
	// Offline uses only what is cached or in Local; no network.
	Offline bool
	// Local is a folder of this machine with wheels, tarballs or gems to install from.
	Local string
	// Timeout bounds one installation; 0 means ten minutes.
	Timeout time.Duration
}

// defaultInstallTimeout is what a zero InstallOptions.Timeout means.
const defaultInstallTimeout = 10 * time.Minute

// Install makes libraries of the sandbox's language importable for all later runs,
// commands and kernels. Each is named as its ecosystem names it, with a version
// constraint if need be: "six", "requests>=2,<3", "@types/node@20", "nokogiri:1.15.0".
//
// They are installed in a sandbox of their own, which has no files of this one, network to
// nothing but the package registries, and its own limits; what it makes is cached by
// language, toolchain, image and list, and copied into this sandbox. A list that is cached
// needs no network. Installing one that the sandbox has already does nothing, and so does
// an empty one. opts may be nil; then Options.Install counts.
//
// It fails with ErrInvalid for what is no name of a library, before anything runs, with an
// *InstallError when the package tool failed, with ErrToolchain when there is none, and
// with ErrUnsupported for a language or backend that has no libraries.
func (s *Sandbox) Install(ctx context.Context, libraries []string, opts *InstallOptions) error {
	if err := s.link.Alive(); err != nil {
		return err
	}
	return s.install(ctx, s.language.Name, libraries, opts)
}

func (s *Sandbox) install(ctx context.Context, lang string, libraries []string, opts *InstallOptions) error {
	if len(libraries) == 0 {
		return nil
	}
	language, err := all.Get(lang)
	if err != nil {
		return err
	}
	if err := s.policy.checkLibraries(language, libraries); err != nil {
		return err
	}
	if opts == nil {
		opts = &s.libraries.defaults
	}
	info := s.machine.Info()
	q, err := newLibraryRequest(s.libraries.backend, language, libraries, *opts, backend.Spec{
		Image: s.libraries.image(info), Language: info.Language, Progress: s.libraries.progress,
	})
	if err != nil {
		return err
	}
	return s.libraries.add(ctx, s, q)
}

const (
	// libraryVersion changes when the same list gives another layer.
	libraryVersion = 1
	// maxLibraries bounds one list.
	maxLibraries = 256
	// libraryPrefix is followed by a layer's key. The path of a library folder is the same
	// in the sandbox that installs and in all that use it, since tools write it into files.
	libraryPrefix = "/tmp/.llmsandbox-lib-"
)

// A libraryRequest is a list of libraries on its way to a layer.
type libraryRequest struct {
	backend   backend.Backend
	layers    backend.Layers
	language  *language.Language
	libraries []string // canonical, sorted, without doubles
	options   InstallOptions
	spec      backend.Spec // Image, Language and Progress
}

// newLibraryRequest checks a list before anything else is done for it.
func newLibraryRequest(b backend.Backend, lang *language.Language, libraries []string, o InstallOptions, spec backend.Spec) (*libraryRequest, error) {
	if lang.Libraries == nil {
		return nil, fmt.Errorf("install libraries: %w: %s has no way to: put what the code needs into the image or among its files", ErrUnsupported, lang.Title)
	}
	if len(libraries) > maxLibraries {
		return nil, fmt.Errorf("install %d libraries: %w: a list has at most %d", len(libraries), ErrInvalid, maxLibraries)
	}
	q := &libraryRequest{backend: b, language: lang, options: o, spec: spec}
	for _, name := range libraries {
		canonical, err := lang.Libraries.Check(name)
		if err != nil {
			return nil, fmt.Errorf("install libraries of %s: %w: %w", lang.Title, ErrInvalid, err)
		}
		q.libraries = append(q.libraries, canonical)
	}
	slices.Sort(q.libraries)
	q.libraries = slices.Compact(q.libraries)
	switch {
	case o.Timeout < 0:
		return nil, fmt.Errorf("installation timeout of %v: %w: it is a positive duration, or 0 for %v", o.Timeout, ErrInvalid, defaultInstallTimeout)
	case o.Timeout == 0:
		q.options.Timeout = defaultInstallTimeout
	}
	var err error
	if q.layers, err = b.Layers(); err != nil {
		return nil, fmt.Errorf("install libraries: %w", err)
	}
	return q, nil
}

// key names all that a layer depends on. Where its files came from is no part of it but for
// a local folder: a mirror has the same ones.
func (q *libraryRequest) key(fingerprint, local string) string {
	return layerKey(q.language.Name, struct {
		Version            int
		Lang, Print, Local string
		Libraries          []string
	}{libraryVersion, q.language.Name, fingerprint, local, q.libraries})
}

func (q *libraryRequest) about(key string) backend.LayerInfo {
	return backend.LayerInfo{Key: key, Language: q.language.Name, Libraries: q.libraries, Image: q.spec.Image}
}

func (q *libraryRequest) progress(message string) {
	if q.spec.Progress != nil {
		q.spec.Progress(backend.Progress{Stage: "install", Message: message})
	}
}

// fail is an error of this request.
func (q *libraryRequest) fail(err error) error {
	return &InstallError{Language: q.language.Name, Libraries: q.libraries, Err: err}
}

// An InstallError tells that libraries could not be installed: there is no such package,
// it does not build, its versions conflict, or it took too long. It wraps ErrInstall, and
// Err if there is one.
type InstallError struct {
	Language  string
	Libraries []string // canonical, sorted
	// Status is what became of the package tool; empty when it did not come to run.
	Status Status
	// Output are the package tool's own last lines.
	Output string
	// Err is the cause when it was not the package tool.
	Err error
}

// Error tells all of it.
func (e *InstallError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s (%s)", ErrInstall, strings.Join(e.Libraries, ", "), e.Language)
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
func (e *InstallError) Unwrap() []error {
	if e.Err == nil {
		return []error{ErrInstall}
	}
	return []error{ErrInstall, e.Err}
}

// errRunTimeout is the cause of a context that a run's own timeout has ended.
var errRunTimeout = errors.New("the run took longer than its timeout")

// install installs a run's own libraries, which counts against its timeout.
func (r *run) install(ctx context.Context, libraries []string) error {
	if len(libraries) == 0 {
		return nil
	}
	r.started = time.Now()
	if r.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, r.timeout, errRunTimeout)
		defer cancel()
	}
	err := r.sandbox.install(ctx, r.language.Name, libraries, nil)
	if err != nil && errors.Is(context.Cause(ctx), errRunTimeout) {
		return errRunTimeout
	}
	return err
}

// timedOutEarly is the result of a run whose timeout ended the installation of its
// libraries: the program was never started.
func (r *run) timedOutEarly(res *Result) (*Result, error) {
	res.Status = StatusTimeout
	res.Reason = fmt.Sprintf("installing the run's libraries took longer than its timeout of %v; the program was not started", r.timeout)
	return res, nil
}
