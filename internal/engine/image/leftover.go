package image

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox/internal/engine/containers"
)

const (
	maxLeft = 2000 // ids kept of one build
	// removalWait bounds how long a cancelled build's container is waited for.
	removalWait = 20 * time.Second
	// listTries is how often images are listed that others are removing.
	listTries = 5
)

var (
	imageLine     = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^ ?--+> ([0-9a-f]{11,64})\s*$`) })
	containerLine = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^ ---> Running in ([0-9a-f]{12,64})\s*$`) })
)

// leftovers are what a build may have left when it fails: the images of the steps that
// succeeded. The builder names them only in its output, where a program in the build can
// name others. So what the engine had before is never touched, nor what has a name or
// is used, and containers are only waited for.
type leftovers struct {
	store      *Store
	before     map[string]bool // ids of all images
	images     []string        // said to be made, oldest first
	containers []string
}

func (s *Store) watchLeftovers(ctx context.Context) (*leftovers, error) {
	l := &leftovers{store: s}
	var err error
	if l.before, err = l.list(ctx); err != nil {
		return nil, err
	}
	return l, nil
}

// list returns the ids of all images. Podman refuses to list any when one of them is
// removed at that moment, which passes.
func (l *leftovers) list(ctx context.Context) (map[string]bool, error) {
	var res client.ImageListResult
	var err error
	for range listTries {
		if res, err = l.store.Client.ImageList(ctx, client.ImageListOptions{All: true}); !errdefs.IsInternal(err) {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("list the engine's images: %w", err)
	}
	ids := map[string]bool{}
	for _, i := range res.Items {
		ids[i.ID] = true
	}
	return ids, nil
}

func (l *leftovers) see(m message) {
	if f := imageLine().FindStringSubmatch(m.Stream); f != nil && len(l.images) < maxLeft {
		l.images = append(l.images, f[1])
	}
	if f := containerLine().FindStringSubmatch(m.Stream); f != nil && len(l.containers) < maxLeft {
		l.containers = append(l.containers, f[1])
	}
}

// remove removes what the build made. The engine may still be ending its last container.
func (l *leftovers) remove(ctx context.Context) error {
	wait, cancel := context.WithTimeout(ctx, removalWait)
	defer cancel()
	for _, id := range l.containers {
		end := <-containers.Wait(wait, l.store.Client, id, container.WaitConditionRemoved)
		if end.Err != nil && !containers.Absent(end.Err) {
			return fmt.Errorf("wait for the build's container %s to be removed: %w", id, end.Err)
		}
	}
	var failed error
	for i := len(l.images) - 1; i >= 0; i-- {
		failed = errors.Join(failed, l.removeImage(ctx, l.images[i]))
	}
	return failed
}

func (l *leftovers) removeImage(ctx context.Context, short string) error {
	img, err := l.store.Client.ImageInspect(ctx, short)
	if errdefs.IsNotFound(err) || err == nil && (l.before[img.ID] || len(img.RepoTags)+len(img.RepoDigests) > 0) {
		return nil
	}
	if err == nil {
		_, err = l.store.Client.ImageRemove(ctx, img.ID, client.ImageRemoveOptions{})
	}
	if err != nil && !errdefs.IsNotFound(err) && !errdefs.IsConflict(err) {
		return fmt.Errorf("remove the build's image %s: %w", short, err)
	}
	return nil
}
