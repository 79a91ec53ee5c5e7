package testengine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// rootlessFolder keeps the images of the user that root makes, who cannot look into
// root's own cache.
const rootlessFolder = "/var/cache/llmsandbox-test/rootless"

func startRootless(ctx context.Context) (*Engine, error) {
	if os.Geteuid() != 0 {
		return startRootlessAsSelf(ctx)
	}
	end, err := makeUser()
	if err != nil {
		return nil, err
	}
	user := &syscall.Credential{Uid: userID, Gid: userID}
	run, err := runFolder()
	if err != nil {
		return nil, errors.Join(err, end())
	}
	cleanup := func() error { return errors.Join(end(), os.RemoveAll(run)) }
	for _, folder := range []string{rootlessFolder, run} {
		if err := give(folder); err != nil {
			return nil, errors.Join(err, cleanup())
		}
	}
	e, err := rootless(ctx, rootlessFolder, run, user)
	if err != nil {
		return nil, errors.Join(err, cleanup())
	}
	e.cleanup = cleanup
	return e, nil
}

func startRootlessAsSelf(ctx context.Context) (*Engine, error) {
	data, err := cacheFolder("podman-rootless")
	if err != nil {
		return nil, err
	}
	run, err := runFolder()
	if err != nil {
		return nil, err
	}
	e, err := rootless(ctx, data, run, nil)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(run))
	}
	e.cleanup = func() error { return errors.Join(endPause(run), os.RemoveAll(run)) }
	return e, nil
}

// endPause ends the process that holds Podman's user namespace between calls.
func endPause(run string) error {
	return endLeftover(filepath.Join(run, "libpod", "pause.pid"), "podman pause")
}

func rootless(ctx context.Context, data, run string, user *syscall.Credential) (*Engine, error) {
	xdg := filepath.Join(run, "xdg")
	if err := os.Mkdir(xdg, 0o700); err != nil {
		return nil, err
	}
	if user != nil {
		if err := os.Chown(xdg, int(user.Uid), int(user.Gid)); err != nil {
			return nil, err
		}
	}
	d, err := podman(ctx, data, run, user, nil)
	if err != nil {
		return nil, err
	}
	return &Engine{
		Name: "podman-rootless", Host: "unix://" + filepath.Join(run, "podman.sock"), DataRoot: data,
		Podman: true, Rootless: true, daemon: d,
	}, nil
}

// give makes a folder the made user's.
func give(folder string) error {
	if err := os.MkdirAll(filepath.Dir(folder), 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(folder, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return os.Chown(folder, userID, userID)
}
