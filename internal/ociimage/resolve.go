package ociimage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sync/errgroup"

	"github.com/llmsandbox/llmsandbox/backend"
)

// Options of Resolve and Pull. The zero value is good.
type Options struct {
	// Platform is "os/arch" or "os/arch/variant"; "" is Linux on this machine's
	// architecture.
	Platform string
	// Progress, when set, gets reports of the bytes fetched. It is never called
	// concurrently and must not block.
	Progress func(backend.Progress)
}

func (o Options) platform() (v1.Platform, error) {
	if o.Platform == "" {
		return v1.Platform{OS: "linux", Architecture: runtime.GOARCH}, nil
	}
	p, err := v1.ParsePlatform(o.Platform)
	if err != nil || p.OS != "linux" || p.Architecture == "" || p.OSVersion != "" || p.String() != o.Platform {
		return v1.Platform{}, fmt.Errorf("platform %q: write it like linux/amd64 or linux/arm/v7", o.Platform)
	}
	return *p, nil
}

// parallelLayers is how many layers are fetched and unpacked at once.
const parallelLayers = 4

// Resolve returns the image that ref names, and fetches it when the store does not have
// it. A directory or tar that changed since counts as missing. The caller must Release
// the image. ref is
//
//   - a registry reference such as "127.0.0.1:5000/tools:1" (or docker://...),
//   - the directory of an OCI layout, with ":tag" where it has several images (oci:...),
//   - the file of a `docker save` or OCI tar, also compressed (docker-archive:...),
//   - the id of an image in the store, "sha256:" and 64 digits.
//
// A path is known by a leading "/", "./" or "../", by ending in .tar, .tar.gz, .tgz
// or .tar.zst, or by the prefix. A name that can mean both is refused.
//
// Errors wrap backend.ErrImageNotFound when there is no such image or it cannot be
// read, and backend.ErrImageInvalid when it is damaged or goes over a limit; after
// either the store is as it was, but for layers that are complete.
func (s *Store) Resolve(ctx context.Context, ref string, o Options) (*Image, error) {
	return s.resolve(ctx, ref, o, false)
}

// Pull is Resolve that asks the registry what the name means now. Layers that are there
// already are not fetched again.
func (s *Store) Pull(ctx context.Context, ref string, o Options) (*Image, error) {
	return s.resolve(ctx, ref, o, true)
}

func (s *Store) resolve(ctx context.Context, ref string, o Options, always bool) (*Image, error) {
	want, err := o.platform()
	if err != nil {
		return nil, err
	}
	r, err := parseRef(ref)
	if err != nil {
		return nil, err
	}
	if r.kind == kindID {
		return s.use(refRecord{Name: ref, Digest: ref, ID: ref})
	}
	if !always {
		img, err := s.lookup(r, want)
		if err == nil || !errors.Is(err, backend.ErrImageNotFound) {
			return img, err
		}
	}
	img, err := s.pull(ctx, r, want, o)
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", r.name, err)
	}
	return img, nil
}

// lookup finds the image in the store.
func (s *Store) lookup(r reference, want v1.Platform) (*Image, error) {
	var ref refRecord
	err := readJSON(s.refPath(r.name, want.String()), &ref)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, backend.ErrImageNotFound
	}
	if err != nil {
		return nil, err
	}
	stamp, err := r.fingerprint()
	if err != nil {
		return nil, err
	}
	if stamp != ref.Fingerprint {
		return nil, fmt.Errorf("the image changed since it was read: %w", backend.ErrImageNotFound)
	}
	return s.use(ref)
}

func (s *Store) pull(ctx context.Context, r reference, want v1.Platform, o Options) (img *Image, err error) {
	unlock, err := s.lockPull(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	stamp, err := r.fingerprint() // before reading: a change meanwhile reads it again
	if err != nil {
		return nil, err
	}
	m := newMeter(o.Progress, r)
	defer func() { m.end(err) }()
	b := newBudget(s.Limits)
	c, err := find(ctx, r, want, s.path("tmp"), b)
	if err != nil {
		return nil, err
	}
	if c.close != nil {
		defer c.close()
	}
	if len(c.layers) > s.Limits.Layers {
		return nil, invalid("it has more than %d layers", s.Limits.Layers)
	}
	m.expect(distinct(c.layers))
	size, err := s.installAll(ctx, c.layers, b, m)
	if err != nil {
		return nil, err
	}
	rec := imageRecord{
		ID: c.id.String(), Platform: c.platform().String(),
		Created: c.file.Created.Time, Size: size, Config: c.config,
	}
	for _, l := range c.layers {
		rec.Layers = append(rec.Layers, l.diffID.Hex)
	}
	if err := s.writeJSON(s.path("images", c.id.Hex+".json"), rec, os.Link); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	ref := refRecord{
		Name: r.name, Platform: want.String(), ID: rec.ID, Digest: c.digest,
		Pulled: time.Now().UTC(), Fingerprint: stamp,
	}
	if err := s.writeJSON(s.refPath(ref.Name, ref.Platform), ref, os.Rename); err != nil {
		return nil, err
	}
	return s.use(ref)
}

// find loads what the reference names, without its layers. tmp is a directory for what has
// to be unpacked meanwhile.
func find(ctx context.Context, r reference, want v1.Platform, tmp string, b *budget) (*candidate, error) {
	switch r.kind {
	case kindLayout:
		root, err := os.OpenRoot(r.path)
		if err != nil {
			return nil, fmt.Errorf("read the OCI layout (%v): %w", err, backend.ErrImageNotFound)
		}
		c, err := directoryLayout(root).load(ctx, r.tag, want)
		if err != nil {
			root.Close()
			return nil, err
		}
		c.close = func() { root.Close() }
		return c, nil
	case kindArchive:
		a, err := openArchive(ctx, r.path, tmp, b)
		if err != nil {
			return nil, err
		}
		c, err := a.load(ctx, r.tag, want)
		if err != nil {
			a.file.Close()
			return nil, err
		}
		c.close = func() { a.file.Close() }
		return c, nil
	}
	return loadRegistry(ctx, r.reg, want)
}

// installAll puts the layers into the store and adds up their sizes.
func (s *Store) installAll(ctx context.Context, layers []layer, b *budget, m *meter) (size int64, err error) {
	list := distinct(layers)
	records := make([]layerRecord, len(list))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelLayers)
	for i, l := range list {
		group.Go(func() error {
			rec, err := s.install(ctx, l, b, m)
			records[i] = rec
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return 0, err
	}
	for _, r := range records {
		size += r.Size
	}
	return size, nil
}

// distinct drops repeated layers: two of the same would wait for each other's lock.
func distinct(layers []layer) []layer {
	seen := map[v1.Hash]bool{}
	var list []layer
	for _, l := range layers {
		if !seen[l.diffID] {
			seen[l.diffID] = true
			list = append(list, l)
		}
	}
	return list
}

// fingerprint changes when a directory or tar does. Registry references have none.
func (r reference) fingerprint() (string, error) {
	switch r.kind {
	case kindLayout:
		data, err := os.ReadFile(filepath.Join(r.path, "index.json"))
		if err != nil {
			return "", invalid("the folder is not an OCI layout: it has no readable index.json (%v)", errors.Unwrap(pathError(err)))
		}
		return digestOf(data).Hex, nil
	case kindArchive:
		info, err := os.Stat(r.path)
		if err != nil {
			return "", fmt.Errorf("read the image tar (%v): %w", err, backend.ErrImageNotFound)
		}
		return fmt.Sprintf("%d %d %d", info.Size(), info.ModTime().UnixNano(), inode(info)), nil
	}
	return "", nil
}

// reportEvery keeps a fast line from spending its time on reports.
const reportEvery = 50 * time.Millisecond

// A meter adds up what several layers fetch. A nil meter counts nothing.
type meter struct {
	mu     sync.Mutex
	report func(backend.Progress)
	step   backend.Progress
	last   time.Time
}

func newMeter(report func(backend.Progress), r reference) *meter {
	if report == nil {
		return nil
	}
	m := &meter{report: report, step: backend.Progress{Stage: "pull", Message: r.name}}
	if r.path != "" {
		m.step.Stage = "load"
	}
	m.send()
	return m
}

// expect is called before the layers are fetched.
func (m *meter) expect(layers []layer) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range layers {
		m.step.Total += max(l.size, 0)
	}
	m.send()
}

// end reports the end, with the error if there is one.
func (m *meter) end(err error) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.step.Done = true
	if err != nil {
		m.step.Error = err.Error()
	}
	m.send()
}

func (m *meter) add(n int64) {
	if m == nil || n == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.step.Current += n
	if m.step.Current >= m.step.Total || time.Since(m.last) >= reportEvery {
		m.send()
	}
}

func (m *meter) send() {
	m.last = time.Now()
	m.report(m.step)
}
