package layers

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
	"github.com/llmsandbox/llmsandbox/internal/agentlink"
	"github.com/llmsandbox/llmsandbox/internal/agentproto"
	"github.com/llmsandbox/llmsandbox/internal/ctxlock"
	"github.com/llmsandbox/llmsandbox/internal/environ"
	"github.com/llmsandbox/llmsandbox/internal/language/all"
	"github.com/llmsandbox/llmsandbox/internal/layerstore"
)

// libraryMarks is a directory below the one for temporary files with an empty file for each list of libraries that
// was installed when the sandbox was open already, so that a handle that attaches to it knows of them.
const libraryMarks = ".llmsandbox-libraries"

// Installed are the libraries of an open sandbox.
type Installed struct {
	link   *agentlink.Link
	kept   string   // where they are installed and kept; "" if they are layers, or copies of them
	id     string   // the sandbox's
	temp   string   // below which they are installed, unless they are kept
	opened []string // those that the sandbox was opened with

	adding ctxlock.Mutex // held while one is copied in
	mu     sync.Mutex
	dirs   []string // newest first
	known  bool     // none that another handle has installed is missing
}

// NewInstalled returns those of the machine that a link connects to. They are the ones that its
// environment names, and those that other handles have installed: the sandbox is asked for these
// when they are first needed, unless Opened is called.
func NewInstalled(link *agentlink.Link, m backend.Machine) *Installed {
	opened := listedLibraries(m.Guest().Env)
	return &Installed{link: link, id: m.ID(), temp: tempOf(m.Guest()), opened: opened, dirs: opened, adding: ctxlock.New()}
}

// Opened notes that no other handle can have installed any.
func (l *Installed) Opened() { l.known = true }

// Forget forgets all but those that the sandbox was opened with.
func (l *Installed) Forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dirs = l.opened
}

// all are the library directories, the last installed first.
func (l *Installed) all(ctx context.Context) ([]string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known {
		return slices.Clone(l.dirs), nil
	}
	client, err := l.link.Client(ctx)
	if err != nil {
		return nil, err
	}
	list, err := client.List(ctx, cmp.Or(l.kept, path.Join(l.temp, libraryMarks)))
	if err != nil && !absent(err) {
		return nil, fmt.Errorf("look for the libraries of sandbox %s: %w", l.id, l.link.Explain(ctx, err))
	}
	slices.SortFunc(list.Files, func(a, b agentproto.FileInfo) int { return cmp.Compare(b.MTimeMicros, a.MTimeMicros) })
	var dirs []string
	for _, f := range list.Files {
		if name, marks := strings.CutSuffix(f.Name, keptMark); l.kept == "" {
			dirs = append(dirs, path.Join(l.temp, f.Name))
		} else if marks {
			dirs = append(dirs, path.Join(l.kept, name))
		}
	}
	l.dirs, l.known = validDirs(append(dirs, l.dirs...)), true
	return slices.Clone(l.dirs), nil
}

// Environ returns an environment in which the sandbox's libraries are found.
func (l *Installed) Environ(ctx context.Context, env []string) ([]string, error) {
	dirs, err := l.all(ctx)
	if err != nil {
		return nil, err
	}
	return withLibraries(env, dirs), nil
}

// Dirs are the directories of a language's libraries, the last installed first.
func (l *Installed) Dirs(ctx context.Context, lang string) ([]string, error) {
	dirs, err := l.all(ctx)
	return ofLanguage(dirs, lang), err
}

// room fails where there are as many lists of libraries as there can be.
func (l *Installed) room(have []string) error {
	if len(have) >= maxDirs {
		return fmt.Errorf("install libraries: %w: sandbox %s has %d lists of them already: open another one", backend.ErrInvalid, l.id, maxDirs)
	}
	return nil
}

// Add copies libraries into the open sandbox, unless they are there, and makes their layer
// where there is none. A nil request has none.
func (l *Installed) Add(ctx context.Context, q *Libraries) error {
	if q == nil {
		return nil
	}
	if l.kept != "" {
		return l.installKept(ctx, q)
	}
	key, source, err := q.layer(ctx)
	if err != nil {
		return err
	}
	if err := l.adding.Lock(ctx); err != nil {
		return err
	}
	defer l.adding.Unlock()
	have, err := l.all(ctx)
	if err != nil {
		return err
	}
	dir := libraryDir(l.temp, key)
	if slices.Contains(have, dir) {
		return nil
	}
	if err := l.room(have); err != nil {
		return err
	}
	if err := l.bring(ctx, q, source, dir); err != nil {
		return fmt.Errorf("install libraries in sandbox %s: %w", l.id, l.link.Explain(ctx, err))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dirs = append([]string{dir}, l.dirs...)
	return nil
}

// bring copies a layer's files into the sandbox, in which they become visible at
// once when all are there.
func (l *Installed) bring(ctx context.Context, q *Libraries, source, dir string) error {
	client, err := l.link.Client(ctx)
	if err != nil {
		return err
	}
	half := dir + ".half"
	gone := agentclient.RemoveOptions{Recursive: true, Missing: true}
	if err := errors.Join(client.Remove(ctx, half, gone), client.Remove(ctx, dir, gone)); err != nil {
		return err
	}
	if err := copyIn(ctx, q.layers, client, source, half); err != nil {
		return errors.Join(err, client.Remove(context.WithoutCancel(ctx), half, gone))
	}
	if err := client.Rename(ctx, half, dir); err != nil {
		return err
	}
	_, err = client.WriteFile(ctx, path.Join(l.temp, libraryMarks, path.Base(dir)), strings.NewReader(""), agentclient.WriteOptions{Mode: 0o644, Create: true, Truncate: true, Parents: true})
	return err
}

// copyIn copies a layer's files into a directory of a sandbox.
func copyIn(ctx context.Context, from backend.Layers, client *agentclient.Client, source, dir string) error {
	pr, pw := io.Pipe()
	read := make(chan error, 1)
	go func() {
		err := from.Read(ctx, source, pw)
		pw.CloseWithError(err)
		read <- err
	}()
	took, err := client.TarIn(ctx, dir, pr, agentclient.TarLimits{Links: true})
	pr.CloseWithError(io.ErrClosedPipe) // ends a reader of the layer whose writer is gone
	if rerr := <-read; rerr != nil && !errors.Is(rerr, io.ErrClosedPipe) {
		err = rerr
	}
	if err == nil && len(took.Skipped) > 0 {
		err = fmt.Errorf("it was not taken whole: %s: %w", took.Skipped[0], fs.ErrInvalid)
	}
	return err
}

const (
	// librariesVariable names the library directories that a sandbox was opened with, for
	// handles that attach to it.
	librariesVariable = "SANDBOX_LIBRARIES"
	// maxDirs bounds how many library directories a sandbox has.
	maxDirs = 64
)

// libraryLanguage returns the language of a library directory, or "" for what is none: names
// come out of the sandbox, too.
func libraryLanguage(dir string) string {
	name, hash, cut := strings.Cut(libraryKey(dir), "-")
	if !cut || len(hash) != 32 || strings.Trim(hash, "0123456789abcdef") != "" {
		return ""
	}
	lang, err := all.Get(name)
	if err != nil || lang.Name != name || lang.Libraries == nil {
		return ""
	}
	return name
}

// libraryKey returns the key of a library directory, or what is none of a directory that is no such.
func libraryKey(dir string) string {
	if !path.IsAbs(dir) || path.Clean(dir) != dir || strings.Contains(dir, ":") {
		return ""
	}
	above, name := path.Split(dir)
	switch {
	case strings.HasSuffix(above, "/"+keptDir+"/"):
		return name
	case layerstore.IsFiles(dir):
		return path.Base(above)
	}
	if key, ok := strings.CutPrefix(name, libraryName); ok {
		return key
	}
	return ""
}

// validDirs are the valid ones of a list, each once.
func validDirs(list []string) []string {
	var dirs []string
	for _, dir := range list {
		if len(dirs) < maxDirs && libraryLanguage(dir) != "" && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// withLibraries returns an environment in which the libraries of all directories are found.
func withLibraries(env, dirs []string) []string {
	if len(dirs) == 0 {
		return env
	}
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

// listedLibraries are the directories that an environment names.
func listedLibraries(env []string) []string {
	return validDirs(strings.Split(environ.Value(env, librariesVariable), ":"))
}
