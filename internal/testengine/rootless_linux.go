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
		folder, err := cacheFolder("podman-rootless")
		if err != nil {
			return nil, err
		}
		return rootless(ctx, folder, nil)
	}
	end, err := makeUser()
	if err != nil {
		return nil, err
	}
	e, err := rootless(ctx, rootlessFolder, &syscall.Credential{Uid: userID, Gid: userID})
	if err != nil {
		return nil, errors.Join(err, end())
	}
	remove := e.cleanup
	e.cleanup = func() error { return errors.Join(end(), remove()) }
	return e, nil
}

func rootless(ctx context.Context, folder string, user *syscall.Credential) (*Engine, error) {
	uid := os.Geteuid()
	if user != nil {
		uid = int(user.Uid)
	}
	if err := os.MkdirAll(filepath.Dir(folder), 0o755); err != nil {
		return nil, err
	}
	run, err := runFolder("podman-rootless", uid)
	if err != nil {
		return nil, err
	}
	for _, path := range []string{folder, filepath.Join(run, "xdg")} {
		if err := ownFolder(path, uid); err != nil {
			return nil, err
		}
	}
	e, err := podman(ctx, Engine{Name: "podman-rootless", DataRoot: filepath.Join(folder, "storage"), Rootless: true}, run, user, nil)
	if err != nil {
		return nil, err
	}
	remove := e.cleanup
	e.cleanup = func() error {
		// The process that holds Podman's user namespace between calls.
		return errors.Join(endLeftover(filepath.Join(run, "libpod", "pause.pid"), "podman pause"), remove())
	}
	return e, nil
}
