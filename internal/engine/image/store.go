package image

import (
	"context"
	"fmt"
	"sync"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox/backend"
)

// A Store is the images of one engine. Its methods may be called concurrently; two calls
// that need the same image fetch it once. It must not be copied.
type Store struct {
	Client *client.Client
	// Auth returns the X-Registry-Auth value for a reference in full, "" for none. Nil
	// means that nothing has credentials.
	Auth func(ctx context.Context, ref string) (string, error)
	// Default returns the images a language may use, best first; the last is one that
	// can be pulled. Nil, or an empty list, means that an image must be named.
	Default func(language string) []string

	flights flights

	mu    sync.Mutex
	arch  string            // of the engine, once it was asked
	loads map[string]string // what was loaded: its place and fingerprint, to its tag
}

// committedLabel is where Image.Committed is kept.
const committedLabel = "llmsandbox.committed"

// An Image is an image that the engine has.
type Image struct {
	ID string // as the engine knows it, "sha256:..."
	// Ref is the name it was found under; for one known by its id only, the id.
	Ref        string
	Env        []string
	User       string
	Workdir    string
	Arch       string // as GOARCH
	OS         string
	Entrypoint []string
	// Committed is the directory with the files that a committed sandbox had in its working
	// directory; "" for other images.
	Committed string
	// Made says that this call brought it to the engine under Ref: it was not there.
	Made bool
}

// inspect asks the engine for an image that it has. The name must be valid. When it has
// none the error is errdefs.IsNotFound.
func (s *Store) inspect(ctx context.Context, name string) (Image, error) {
	res, err := s.Client.ImageInspect(ctx, name)
	if err != nil {
		return Image{}, err
	}
	img := Image{ID: res.ID, Ref: name, Arch: res.Architecture, OS: res.Os}
	if res.Config != nil {
		img.Env, img.User, img.Workdir, img.Entrypoint = res.Config.Env, res.Config.User, res.Config.WorkingDir, res.Config.Entrypoint
		img.Committed = res.Config.Labels[committedLabel]
	}
	return img, nil
}

// usable is inspect of an image that a sandbox can be made from; found reports whether
// there is one at all.
func (s *Store) usable(ctx context.Context, name string) (img Image, found bool, err error) {
	img, err = s.inspect(ctx, name)
	switch {
	case errdefs.IsNotFound(err):
		return Image{}, false, nil
	case err != nil:
		return Image{}, false, fmt.Errorf("ask the engine for image %s: %w", name, err)
	}
	return img, true, checkPlatform(img)
}

// checkPlatform refuses images that there is no agent for.
func checkPlatform(img Image) error {
	if img.OS == "linux" && (img.Arch == "amd64" || img.Arch == "arm64") {
		return nil
	}
	return fmt.Errorf("image %s is for %s, and sandboxes run linux/amd64 and linux/arm64 only: name an image for one of these: %w",
		img.Ref, clean(img.OS+"/"+img.Arch), backend.ErrImageInvalid)
}

// engineArch is the engine's architecture, which need not be this machine's.
func (s *Store) engineArch(ctx context.Context) (string, error) {
	s.mu.Lock()
	arch := s.arch
	s.mu.Unlock()
	if arch != "" {
		return arch, nil
	}
	v, err := s.Client.ServerVersion(ctx, client.ServerVersionOptions{})
	if err != nil {
		return "", fmt.Errorf("ask the engine for its architecture: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.arch = v.Arch
	return v.Arch, nil
}
