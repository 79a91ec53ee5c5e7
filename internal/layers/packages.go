package layers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/ctxlock"
	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/layertree"
	"github.com/llmsandbox/llmsandbox/internal/tarcheck"
)

const (
	// packageVersion changes when the same package gives another layer.
	packageVersion = 1
	// maxPackages bounds the size of all layers of packages. Those used longest ago go first.
	maxPackages = 4 << 30
	// maxInstalling bounds how many sandboxes install packages at once.
	maxInstalling = 8
)

// A linker keeps layers whose files can be part of others at no cost.
type linker interface {
	// Link makes dir, which is empty, hold the files of all sources. It fails with
	// [layertree.ErrConflict] if two of them differ in something.
	Link(ctx context.Context, dir string, o layertree.Options, sources ...string) error
}

// packages are the ones that a list needs, and what installs them.
type packages struct {
	*Libraries
	in        installer
	toolchain string
	taking    ctxlock.Mutex  // held while one is taken out of its sandbox
	taken     layertree.Size // of all that was
}

// fromPackages makes dir the library directory out of layers with one package each, and reports
// whether it could. Which packages a list needs is found out anew each time, in the sandbox s. Whatever is
// claimed there, by packages that are built for it, too, a layer is that of the digests that name it: its sandbox
// runs the accelerator and nothing of any package.
func (q *Libraries) fromPackages(ctx context.Context, s Sandbox, in installer, dir string) (bool, error) {
	l, ok := q.layers.(linker)
	if !ok || q.language.Libraries.Packages == nil || in.accelerator.program == "" || !in.src.Host || q.on != "" {
		return false, nil
	}
	p := &packages{Libraries: q, in: in, taking: ctxlock.New()}
	err := p.link(ctx, s, l, dir)
	if terr := p.trim(context.WithoutCancel(ctx)); terr != nil {
		q.say("remove cached packages: " + terr.Error())
	}
	if err == nil {
		return true, nil
	}
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	q.say("installing without cached packages: " + err.Error())
	return false, removeContent(dir)
}

// errNotLocked: the accelerator has not found packages that can be installed one by one.
var errNotLocked = errors.New("some are not there as files of a known digest")

func (p *packages) link(ctx context.Context, s Sandbox, l linker, dir string) error {
	var err error
	if p.toolchain, err = p.Libraries.toolchain(ctx); err != nil {
		return err
	}
	list, err := p.lock(ctx, s)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		return errNotLocked
	}
	sources := make([]string, len(list))
	work, wctx := errgroup.WithContext(ctx)
	work.SetLimit(min(runtime.NumCPU()+1, maxInstalling)) // one waits for the network
	for i, pkg := range list {
		work.Go(func() (err error) {
			sources[i], err = p.install(wctx, pkg)
			return err
		})
	}
	if err := work.Wait(); err != nil {
		return err
	}
	for _, f := range p.language.Libraries.Packages.Finish {
		source, err := p.finish(ctx, f, list, sources)
		if err != nil {
			return err
		}
		if source != "" {
			sources = append(sources, source)
		}
	}
	return l.Link(ctx, dir, libraryTree, sources...)
}

// lock has the accelerator find out which packages the list needs.
func (p *packages) lock(ctx context.Context, s Sandbox) ([]language.Package, error) {
	how := p.language.Libraries.Packages
	client, err := s.Client(ctx)
	if err != nil {
		return nil, err
	}
	src := p.in.src
	src.Dir = libraryDir(tempOf(s.Guest()), "lock")
	if err := client.Mkdir(ctx, src.Dir, 0o755, true); err != nil {
		return nil, fmt.Errorf("make the folder of the lock: %w", err)
	}
	if err := p.runTool(ctx, s, src, stageInstall, how.Lock); err != nil {
		return nil, err
	}
	data, err := client.ReadAll(ctx, path.Join(src.Dir, how.LockName), maxLockFile)
	if err != nil && absent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the lock: %w", err)
	}
	list, err := how.Read(data)
	if err != nil {
		return nil, fmt.Errorf("read the lock: %w", err)
	}
	return list, nil
}

// key names a layer by the toolchain and the digests that it depends on.
func (p *packages) key(of string, list ...language.Package) string {
	return layerKey(p.language.Name, struct {
		Version       int
		Of, Toolchain string
		Packages      []language.Package
	}{packageVersion, of, p.toolchain, list})
}

// install returns the layer of a package, and makes it where there is none.
func (p *packages) install(ctx context.Context, pkg language.Package) (string, error) {
	how := p.language.Libraries.Packages
	about := backend.LayerInfo{Key: p.key("package", pkg), Language: p.language.Name, Libraries: []string{pkg.Name + "==" + pkg.Version}, Package: true}
	return p.layers.Get(ctx, about, func(ctx context.Context, dir string) error {
		q := *p.Libraries
		q.libraries, q.heading = about.Libraries, p.title()
		return q.inSandbox(ctx, job{
			name: about.Key, stage: stageInstall, from: &p.in,
			plan: func(src language.InstallSource) (language.Plan, error) { return how.Install(src, pkg) },
			done: func(ctx context.Context, s Sandbox, target string) error { return p.take(ctx, s, target, dir) },
		})
	})
}

// take takes a package out of its sandbox. All packages of a list together may be as large as a list.
func (p *packages) take(ctx context.Context, s Sandbox, from, dir string) error {
	if err := p.taking.Lock(ctx); err != nil {
		return err
	}
	defer p.taking.Unlock()
	rest, err := remaining(libraryTree, p.taken)
	if err != nil {
		return err
	}
	err = takeOut(ctx, s, from, dir, rest)
	size, merr := layertree.Measure(dir)
	p.taken.Bytes += size.Bytes
	p.taken.Files += size.Files
	return errors.Join(err, merr)
}

// remaining are the bounds of what may be taken when some was.
func remaining(o layertree.Options, taken layertree.Size) (layertree.Options, error) {
	o.MaxBytes -= taken.Bytes
	o.MaxFiles -= taken.Files
	if o.MaxBytes <= 0 || o.MaxFiles <= 0 { // 0 would be no bound
		return o, fmt.Errorf("the packages of the list together: %w", tarcheck.ErrTooLarge)
	}
	return o, nil
}

// finish returns the layer that finishes some of the packages, "" when they need none. It is made in a sandbox
// without a network that has these packages and no others, and so no others can change it.
func (p *packages) finish(ctx context.Context, f language.Finish, list []language.Package, sources []string) (string, error) {
	has := map[string]string{}
	var with []language.Package
	found := false
	for i, pkg := range list {
		if found = found || pkg.Name == f.Of; pkg.Name == f.Of || slices.Contains(f.With, pkg.Name) {
			with = append(with, pkg)
			has[p.key("package", pkg)] = sources[i]
		}
	}
	if !found {
		return "", nil
	}
	slices.SortFunc(with, func(a, b language.Package) int { return cmp.Compare(a.Name, b.Name) })
	about := backend.LayerInfo{Key: p.key(f.Title, with...), Language: p.language.Name, Cache: f.Title}
	return p.layers.Get(ctx, about, func(ctx context.Context, dir string) error {
		return p.inSandbox(ctx, job{
			name: about.Key, stage: stageInstall, plan: f.Plan, from: &installer{}, layers: has,
			done: func(ctx context.Context, s Sandbox, target string) error {
				return takeOut(ctx, s, target, dir, libraryTree)
			},
		})
	})
}

// trim removes the layers of packages that were not used for the longest time if there are too many. Files
// that a list has, too, stay with that.
func (p *packages) trim(ctx context.Context) error {
	if p.taken.Files == 0 {
		return nil
	}
	all, err := p.layers.List(ctx)
	if err != nil {
		return err
	}
	for _, l := range surplus(all, maxPackages) {
		err := p.layers.Remove(ctx, l.Key)
		if err != nil && !errors.Is(err, backend.ErrLocked) && !errors.Is(err, backend.ErrLayerNotFound) {
			return err
		}
	}
	return nil
}

// surplus are the layers of packages that are more than a size, those that were used longest ago.
func surplus(layers []backend.LayerInfo, most int64) []backend.LayerInfo {
	layers = slices.DeleteFunc(slices.Clone(layers), func(l backend.LayerInfo) bool { return !l.Package })
	slices.SortFunc(layers, func(a, b backend.LayerInfo) int {
		return cmp.Or(b.LastUsed.Compare(a.LastUsed), b.Created.Compare(a.Created), strings.Compare(a.Key, b.Key))
	})
	var total int64
	for i, l := range layers {
		if total += l.Size; total > most {
			return layers[i:]
		}
	}
	return nil
}

// removeContent removes what is in a directory.
func removeContent(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	return err
}
