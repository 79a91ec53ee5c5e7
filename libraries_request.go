package llmsandbox

import (
	"fmt"
	"slices"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/language"
)

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
	keeper    backend.LibraryKeeper
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
	q := &libraryRequest{language: lang, options: o, spec: spec}
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
	keeper, ok := b.(backend.LibraryKeeper)
	if !ok {
		return nil, fmt.Errorf("install libraries: %w: the %s backend keeps no layers of libraries: use an image that has them", ErrUnsupported, b.Name())
	}
	if err := keeper.NoLibraries(); err != nil {
		return nil, fmt.Errorf("install libraries: %w", err)
	}
	q.keeper = keeper
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

func (q *libraryRequest) about(key string) backend.LibraryLayer {
	return backend.LibraryLayer{Key: key, Language: q.language.Name, Libraries: q.libraries, Image: q.spec.Image, Created: time.Now()}
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
