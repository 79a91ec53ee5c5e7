package llmsandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agentclient"
	"github.com/llmsandbox/llmsandbox/internal/agentproto"
	"github.com/llmsandbox/llmsandbox/internal/ctxlock"
	"github.com/llmsandbox/llmsandbox/internal/environ"
	"github.com/llmsandbox/llmsandbox/internal/language/all"
)

// libraryMarks is a folder in the sandbox with an empty file for each list of libraries that
// was installed when it was open already, so that a handle that attaches to it knows of them.
const libraryMarks = "/tmp/.llmsandbox-libraries"

// libraryState are the libraries of an open sandbox, and how more of them are installed.
type libraryState struct {
	backend  backend.Backend
	opened   bool   // by this handle
	asked    string // the image it was opened with, if so
	defaults InstallOptions
	progress func(backend.Progress)

	adding ctxlock.Mutex // held while one is copied in
	mu     sync.Mutex
	dirs   []string // newest first
	known  bool     // what others installed was asked for
}

// newLibraryState is that of a machine whose environment names what it was opened with.
func newLibraryState(b backend.Backend, m backend.Machine) libraryState {
	return libraryState{backend: b, dirs: listedLibraries(m.Guest().Env), adding: ctxlock.New()}
}

// forget forgets all but those that Open has installed.
func (l *libraryState) forget(but []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dirs = slices.Clone(but)
}

// image is what a sandbox that installs for this one is made from.
func (l *libraryState) image(info backend.Info) string {
	if l.opened {
		return l.asked
	}
	return info.Image
}

// folders are the library folders, the last installed first. Those of other handles are
// asked for once, by one that was attached.
func (l *libraryState) folders(ctx context.Context, s *Sandbox) ([]string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.opened || l.known {
		return slices.Clone(l.dirs), nil
	}
	client, err := s.link.Client(ctx)
	if err != nil {
		return nil, err
	}
	list, err := client.List(ctx, libraryMarks)
	if err != nil && !absent(err) {
		return nil, fmt.Errorf("look for the libraries of sandbox %s: %w", s.ID(), s.link.Explain(ctx, err))
	}
	slices.SortFunc(list.Files, func(a, b agentproto.FileInfo) int { return cmp.Compare(b.MTimeMicros, a.MTimeMicros) })
	var dirs []string
	for _, f := range list.Files {
		dirs = append(dirs, path.Join("/tmp", f.Name))
	}
	l.dirs, l.known = libraryFolders(append(dirs, l.dirs...)), true
	return slices.Clone(l.dirs), nil
}

// libraryEnviron returns an environment in which the sandbox's libraries are found.
func (s *Sandbox) libraryEnviron(ctx context.Context, env []string) ([]string, error) {
	dirs, err := s.libraries.folders(ctx, s)
	if err != nil {
		return nil, err
	}
	return withLibraries(env, dirs), nil
}

// libraryFolders are the folders of a language's libraries, the last installed first.
func (s *Sandbox) libraryFolders(ctx context.Context, lang string) ([]string, error) {
	dirs, err := s.libraries.folders(ctx, s)
	return ofLanguage(dirs, lang), err
}

// add brings a request's layer into the open sandbox, unless it is there.
func (l *libraryState) add(ctx context.Context, s *Sandbox, q *libraryRequest) error {
	key, source, err := q.layer(ctx)
	if err != nil {
		return err
	}
	if err := l.adding.Lock(ctx); err != nil {
		return err
	}
	defer l.adding.Unlock()
	have, err := l.folders(ctx, s)
	if err != nil {
		return err
	}
	dir := libraryPrefix + key
	if slices.Contains(have, dir) {
		return nil
	}
	if len(have) >= maxLibraryFolders {
		return fmt.Errorf("install libraries: %w: sandbox %s has %d lists of them already: open another one", ErrInvalid, s.ID(), maxLibraryFolders)
	}
	if err := s.bringLibrary(ctx, q, source, dir); err != nil {
		return fmt.Errorf("install libraries in sandbox %s: %w", s.ID(), s.link.Explain(ctx, err))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dirs = append([]string{dir}, l.dirs...)
	return nil
}

// bringLibrary copies a layer's files into the sandbox, in which they become visible at
// once when all are there.
func (s *Sandbox) bringLibrary(ctx context.Context, q *libraryRequest, source, dir string) error {
	client, err := s.link.Client(ctx)
	if err != nil {
		return err
	}
	half := dir + ".half"
	gone := agentclient.RemoveOptions{Recursive: true, Missing: true}
	if err := errors.Join(client.Remove(ctx, half, gone), client.Remove(ctx, dir, gone)); err != nil {
		return err
	}
	pr, pw := io.Pipe()
	read := make(chan error, 1)
	go func() {
		err := q.layers.Read(ctx, source, pw)
		pw.CloseWithError(err)
		read <- err
	}()
	took, err := client.TarIn(ctx, half, pr, agentclient.TarLimits{Links: true})
	pr.CloseWithError(io.ErrClosedPipe) // ends a reader of the layer whose writer is gone
	if rerr := <-read; rerr != nil && !errors.Is(rerr, io.ErrClosedPipe) {
		err = rerr
	}
	if err == nil && len(took.Skipped) > 0 {
		err = fmt.Errorf("it was not taken whole: %s: %w", took.Skipped[0], fs.ErrInvalid)
	}
	if err != nil {
		return errors.Join(err, client.Remove(context.WithoutCancel(ctx), half, gone))
	}
	if err := client.Rename(ctx, half, dir); err != nil {
		return err
	}
	_, err = client.WriteFile(ctx, libraryMark(dir), strings.NewReader(""), agentclient.WriteOptions{Mode: 0o644, Create: true, Truncate: true, Parents: true})
	return err
}

const (
	// librariesVariable names the library folders that a sandbox was opened with, for
	// those who attach to it.
	librariesVariable = "SANDBOX_LIBRARIES"
	// maxLibraryFolders bounds how many library folders a sandbox has.
	maxLibraryFolders = 64
)

// libraryLanguage returns the language of a library folder, or "" for what is none: names
// come out of the sandbox, too.
func libraryLanguage(dir string) string {
	key, ok := strings.CutPrefix(dir, libraryPrefix)
	name, hash, cut := strings.Cut(key, "-")
	if !ok || !cut || len(hash) != 32 || strings.Trim(hash, "0123456789abcdef") != "" {
		return ""
	}
	lang, err := all.Get(name)
	if err != nil || lang.Name != name || lang.Libraries == nil {
		return ""
	}
	return name
}

// libraryFolders are the valid ones of a list, each once.
func libraryFolders(list []string) []string {
	var dirs []string
	for _, dir := range list {
		if len(dirs) < maxLibraryFolders && libraryLanguage(dir) != "" && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// withLibraries returns an environment in which the libraries of all folders are found.
func withLibraries(env, dirs []string) []string {
	for _, lang := range all.All() {
		own := ofLanguage(dirs, lang.Name)
		if len(own) == 0 {
			continue
		}
		env = environ.Override(env, lang.Libraries.Use(own, func(name string) string { return environ.Value(env, name) }))
	}
	return env
}

func ofLanguage(dirs []string, lang string) []string {
	var own []string
	for _, dir := range dirs {
		if libraryLanguage(dir) == lang {
			own = append(own, dir)
		}
	}
	return own
}

// listedLibraries are the folders that an environment names.
func listedLibraries(env []string) []string {
	return libraryFolders(strings.Split(environ.Value(env, librariesVariable), ":"))
}

// libraryMark is what marks a library folder as whole, in the sandbox that it was
// installed in later.
func libraryMark(dir string) string { return path.Join(libraryMarks, path.Base(dir)) }
