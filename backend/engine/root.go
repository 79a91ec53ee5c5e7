package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agenthost"
	"github.com/llmsandbox/llmsandbox/internal/engine/image"
	"github.com/llmsandbox/llmsandbox/internal/hostmount"
)

// OwnRoots implements [backend.OwnRoots].
func (b *Backend) OwnRoots() {}

// defaultUser is the unprivileged user of an image that names none or root.
const (
	defaultUID  = 1000
	defaultUser = "1000:1000"
)

// rootCapabilities are what code that is root may do, about files, users and processes, as the agent has them, and SETPCAP: the
// agent keeps that to itself, and with it takes all others from code that is not root.
var rootCapabilities = []string{"CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "SETFCAP", "SETPCAP"}

// checkRoot refuses what no engine can give code of the root file system and its users.
func (b *Backend) checkRoot(spec backend.Spec) error {
	switch {
	case spec.Sudo:
		return fmt.Errorf("sudo: %w: the system call filter cannot be loaded in a container that may gain privileges: let code be root (--user root), or use the local backend", backend.ErrUnsupported)
	case spec.WritableRoot && spec.User == "":
		return fmt.Errorf("a root file system that can be written to: %w: in a container its files belong to root and not to the code: add a user whose they are (--user root)", backend.ErrUnsupported)
	}
	for name := range strings.SplitSeq(spec.User, ":") {
		if id, err := strconv.ParseUint(name, 10, 64); err == nil && id >= maxUsers {
			return fmt.Errorf("user %s: %w: ids in a sandbox are below %d", spec.User, backend.ErrInvalid, maxUsers)
		}
	}
	return hostmount.CheckWorkdir(spec.Workdir, spec.Mounts)
}

// maxUsers is how many ids a user namespace has at least, as engines make them.
const maxUsers = 1 << 16

// explainUser says of a user's name that the engine did not find that the caller can mend it.
func explainUser(user string, err error) error {
	if user != "" && err != nil && (strings.Contains(err.Error(), "unable to find user") || strings.Contains(err.Error(), "unable to find group")) {
		return fmt.Errorf("user %s: %w: the image's /etc/passwd or /etc/group has no such name: %w", user, backend.ErrInvalid, err)
	}
	return err
}

// refuseRoot refuses the same of an existing container.
func refuseRoot(spec backend.Spec) error {
	if spec.WritableRoot || spec.User != "" || spec.Workdir != "" {
		return fmt.Errorf("WritableRoot, User and Workdir: %w: an existing %s has its own root file system and user: leave them out, and run single commands as another user", backend.ErrInvalid, agenthost.Container)
	}
	return nil
}

func workdirOf(spec backend.Spec) string { return cmp.Or(spec.Workdir, defaultWorkdir) }

// user is who the agent and the code run as.
func user(spec backend.Spec, img image.Image) string {
	switch {
	case spec.User != "":
		return spec.User
	case rootUser(img.User):
		return defaultUser
	}
	return img.User
}

// rootUser reports whether a user, as images and containers name them, is root.
func rootUser(u string) bool {
	name, _, _ := strings.Cut(u, ":")
	return name == "" || name == "0" || name == "root"
}

// asRoot reports whether code is to be root.
func asRoot(spec backend.Spec) bool { return spec.User != "" && rootUser(spec.User) }

func capabilitiesOf(spec backend.Spec) []string {
	if asRoot(spec) {
		return rootCapabilities
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
	if asRoot(spec) {
		return maskedPaths
	}
	return nil
}

// nameOf are the variables that name the code's user, as far as the name is known.
func nameOf(spec backend.Spec, img image.Image) []string {
	name, _, _ := strings.Cut(spec.User, ":")
	switch {
	case asRoot(spec):
		name = "root"
	case name == "" && rootUser(img.User):
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
	_, rerr := c.backend.client.ContainerRemove(context.WithoutCancel(ctx), id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	return errors.Join(err, c.backend.explain("remove the container", rerr))
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

// powers replaces the controls of what was asked for by name: a root file system that can be written to, and root.
func powers(all []backend.Control, spec backend.Spec) []backend.Control {
	for i := range all {
		c := &all[i]
		switch {
		case c.Name == "filesystem" && spec.WritableRoot:
			c.Detail = "the image's files are the container's own, as far as they are written to"
		case c.Name == "user" && asRoot(spec):
			*c = backend.Control{Name: c.Name, Why: "root was asked for; the agent holds one capability more, so that code can neither trace it nor its connections", Fix: "leave out User (--user)"}
		case c.Name == "capabilities" && asRoot(spec):
			c.Detail = "root has those over files, users and processes; other users have none"
		}
	}
	return all
}
