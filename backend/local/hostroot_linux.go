package local

import (
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/llmsandbox/llmsandbox/internal/environ"
	"github.com/llmsandbox/llmsandbox/internal/hostroot"
)

// hostRootAge is for how long what was found on the host counts: sandboxes that are
// opened in a burst need not each look at hundreds of files.
const hostRootAge = time.Second

// hostRoots keeps the last host root. No caller may change what is in it.
type hostRoots struct {
	mu    sync.Mutex
	found time.Time
	root  rootfs
}

// hostRoot is the root filesystem of the host's own toolchains.
func (b *Backend) hostRoot() (rootfs, error) {
	b.host.mu.Lock()
	defer b.host.mu.Unlock()
	if time.Since(b.host.found) < hostRootAge {
		// A collection may have removed it since.
		if _, err := os.Lstat(b.host.root.skeleton); err == nil {
			return b.host.root, nil
		}
	}
	root, err := b.findHostRoot()
	if err != nil {
		return rootfs{}, err
	}
	b.host.root, b.host.found = root, time.Now()
	return root, nil
}

func (b *Backend) findHostRoot() (rootfs, error) {
	d, err := b.dirs()
	if err != nil {
		return rootfs{}, err
	}
	root, err := hostroot.Prepare(d.cache, hostroot.Options{})
	if err != nil {
		return rootfs{}, fmt.Errorf("the host's toolchains: %w", err)
	}
	binds := make([][2]string, len(root.Binds))
	for i, bind := range root.Binds {
		binds[i] = [2]string{bind.Source, bind.Target}
	}
	steps, err := hostSteps(root.Skeleton, d.empty, binds)
	if err != nil {
		return rootfs{}, fmt.Errorf("the host's toolchains: %w", err)
	}
	return rootfs{image: "host", host: true, env: environ.Override(root.Env, baseEnv), steps: steps, skeleton: root.Skeleton}, nil
}
