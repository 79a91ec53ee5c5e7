package testengine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// rootlessDir keeps the images of the user that root makes, which cannot look into
// root's own cache.
const rootlessDir = "/var/cache/llmsandbox-test/rootless"

func startRootless(ctx context.Context) (*Engine, error) {
	if os.Geteuid() != 0 {
		dir, err := cacheDir("podman-rootless")
		if err != nil {
			return nil, err
		}
		return rootless(ctx, dir, nil)
	}
	end, err := makeUser()
	if err != nil {
		return nil, err
	}
	e, err := rootless(ctx, rootlessDir, &syscall.Credential{Uid: userID, Gid: userID})
	if err != nil {
		return nil, errors.Join(err, end())
	}
	remove := e.cleanup
	e.cleanup = func() error { return errors.Join(end(), remove()) }
	return e, nil
}

func rootless(ctx context.Context, dir string, user *syscall.Credential) (*Engine, error) {
	uid := os.Geteuid()
	if user != nil {
		uid = int(user.Uid)
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return nil, err
	}
	run, err := runDir("podman-rootless", uid)
	if err != nil {
		return nil, err
	}
	for _, path := range []string{dir, filepath.Join(run, "xdg")} {
		if err := ownDir(path, uid); err != nil {
			return nil, err
		}
	}
	e, err := podman(ctx, Engine{Name: "podman-rootless", DataRoot: filepath.Join(dir, "storage"), Rootless: true}, run, user, nil)
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
