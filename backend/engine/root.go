package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agenthost"
	"github.com/llmsandbox/llmsandbox/internal/engine/image"
)

// OwnRoots implements [backend.OwnRoots].
func (b *Backend) OwnRoots() {}

// defaultUser is the unprivileged user of an image that names none or root.
const (
	defaultUID  = 1000
	defaultUser = "1000:1000"
)

// explainUser says of a user's name that the engine did not find that the caller can mend it.
func explainUser(user string, err error) error {
	if user != "" && err != nil && (strings.Contains(err.Error(), "unable to find user") || strings.Contains(err.Error(), "unable to find group")) {
		return fmt.Errorf("user %s: %w: the image's /etc/passwd or /etc/group has no such name: %w", user, backend.ErrInvalid, err)
	}
	return err
}

func workdirOf(spec backend.Spec) string { return cmp.Or(spec.Workdir, defaultWorkdir) }

// user is who the agent and the code run as.
func user(spec backend.Spec, img image.Image) string {
	switch {
	case spec.User != "":
		return spec.User
	case agenthost.RootUser(img.User):
		return defaultUser
	}
	return img.User
}

func capabilitiesOf(spec backend.Spec) []string {
	if agenthost.AsRoot(spec) {
		return agenthost.RootCapabilities
	}
	return nil
}

// maskedPaths are hidden from root: what engines hide by themselves, in place of which this list is, and what only root may read.
var maskedPaths = []string{
	"/proc/acpi", "/proc/asound", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list", "/proc/timer_stats",
	"/proc/sched_debug", "/proc/scsi", "/sys/firmware", "/sys/devices/virtual/powercap",
	"/proc/kmsg", "/proc/kpagecgroup", "/proc/kpagecount", "/proc/kpageflags", "/proc/pagetypeinfo", "/proc/slabinfo", "/proc/vmallocinfo",
}

func maskedFrom(spec backend.Spec) []string {
	if agenthost.AsRoot(spec) {
		return maskedPaths
	}
	return nil
}

// nameOf are the variables that name the code's user, as far as the name is known.
func nameOf(spec backend.Spec, img image.Image) []string {
	name, _, _ := strings.Cut(spec.User, ":")
	switch {
	case agenthost.AsRoot(spec):
		name = "root"
	case name == "" && agenthost.RootUser(img.User):
		name = "sandbox" // an image that has no user for us has no name for ours either
	case name == "" || strings.Trim(name, "0123456789") == "":
		return nil
	}
	return []string{"USER=" + name, "LOGNAME=" + name}
}

// checkWorkdir refuses a working directory that would hide what the image has there.
func (c *creation) checkWorkdir(ctx context.Context, id string) error {
	dir := workdirOf(c.spec)
	if dir == defaultWorkdir || dir == c.image.Committed {
		return nil
	}
	_, err := c.backend.client.ContainerStatPath(ctx, id, client.ContainerStatPathOptions{Path: dir})
	if errdefs.IsNotFound(err) {
		return nil
	}
	if err = c.backend.explain("look for the working directory in the image", err); err == nil {
		err = fmt.Errorf("working directory %s: %w: the image has it, and a sandbox's own would hide that: use another path", dir, backend.ErrInvalid)
	}
	return errors.Join(err, c.unmake(ctx, id))
}

// diskControl says what holds of the disk limit.
func diskControl(spec backend.Spec) backend.Control {
	dir := workdirOf(spec)
	switch {
	case spec.Limits.Disk == 0:
		return backend.Control{Name: "disk", Why: backend.NotAsked}
	case spec.WritableRoot:
		return backend.Control{Name: "disk", Why: "it holds for " + dir + " and " + tempDir + " only: what is written to the rest of the root file system is on the engine's disk, without a limit",
			Fix: "leave out WritableRoot (--writable-root), or use the local backend"}
	}
	return backend.Control{Name: "disk", Enforced: true, By: "tmpfs", Detail: dir + " and " + tempDir + " each; what they hold counts as memory"}
}
