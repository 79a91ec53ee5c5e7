package podspec

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agenthost"
)

// WorkdirOf is the working directory of a sandbox.
func WorkdirOf(spec backend.Spec) string { return cmp.Or(spec.Workdir, Workdir) }

// idsOf returns the user and group that code is asked to run as. A pod takes numbers only. A number without a group has group 0.
func idsOf(user string) (uid, gid int64, err error) {
	name, group, _ := strings.Cut(user, ":")
	number := func(s string) int64 {
		if s == "root" {
			return 0
		}
		id, perr := strconv.ParseInt(s, 10, 64)
		if perr != nil {
			err = fmt.Errorf("user %s: %w: a pod takes users and groups by number only, but for root: use those of the image's /etc/passwd and /etc/group, such as 1000:1000", user, backend.ErrUnsupported)
		}
		return id
	}
	uid, gid = number(name), number(cmp.Or(group, "0"))
	return uid, gid, err
}

// checkRoot refuses what no pod can give code of the root file system and its users.
func checkRoot(spec backend.Spec) error {
	if err := agenthost.CheckRoot(spec); err != nil || spec.User == "" {
		return err
	}
	_, _, err := idsOf(spec.User)
	return err
}

// addRoot adds what the caller asked for by name to what the sandbox's container may do. Root is only that container: what is beside
// it, and what brings the agent, is of the pod's user.
func addRoot(s *corev1.SecurityContext, spec backend.Spec) {
	s.ReadOnlyRootFilesystem = new(!spec.WritableRoot)
	if agenthost.AsRoot(spec) {
		uid, gid, _ := idsOf(spec.User) // checked
		s.RunAsUser, s.RunAsGroup, s.RunAsNonRoot = new(uid), new(gid), new(false)
		s.Capabilities.Add = rootCapabilities()
	}
}

func rootCapabilities() []corev1.Capability {
	var all []corev1.Capability
	for _, name := range agenthost.RootCapabilities {
		all = append(all, corev1.Capability(name))
	}
	return all
}

// keepRoot has the agent keep its capabilities whichever a template adds, in place of these.
func keepRoot(c *corev1.Capabilities) {
	for _, name := range rootCapabilities() {
		if !slices.Contains(c.Add, name) {
			c.Add = append(c.Add, name)
		}
	}
}

// checkAsked fails where the template takes back what was asked for by name.
func checkAsked(spec backend.Spec, p *corev1.PodTemplateSpec) error {
	v := viewOf(&corev1.Pod{Spec: p.Spec}, Container)
	conflict := func(what, asked, template string) error {
		return fmt.Errorf("%w: the %s is given as %s and, in the pod template, as %s: leave one out", backend.ErrInvalid, what, asked, template)
	}
	if spec.User != "" {
		uid, gid, _ := idsOf(spec.User) // checked
		u, g := *cmp.Or(v.user(), new(int64(-1))), *cmp.Or(v.group(), new(int64(-1)))
		switch {
		case u != uid || g != gid:
			return conflict("user", spec.User, fmt.Sprintf("%d:%d", u, g))
		case uid == 0 && isTrue(v.own.RunAsNonRoot):
			return conflict("user", spec.User, "runAsNonRoot")
		}
	}
	if spec.WritableRoot && isTrue(v.own.ReadOnlyRootFilesystem) {
		return conflict("root file system", "writable", "readOnlyRootFilesystem")
	}
	return nil
}

// rootBytes is what code may write to the root file system, in bytes, which is on the node's disk. 0 beside WritableRoot is any amount.
func rootBytes(spec backend.Spec) int64 {
	if !spec.WritableRoot {
		return 0
	}
	return spec.Limits.Disk
}

// RootForbidden reports whether a cluster did not make a pod since its namespace has no root.
func RootForbidden(p *corev1.Pod, err error) bool {
	return apierrors.IsForbidden(err) && viewOf(p, Container).asRoot() && strings.Contains(err.Error(), `violates PodSecurity "restricted:`)
}

// asRoot reports whether code was asked to be root: its agent then leaves it capabilities.
func (v view) asRoot() bool { return slices.Contains(v.container.Args, "--users") }

func (v view) writableRoot() bool { return !isTrue(v.own.ReadOnlyRootFilesystem) }

// WritableRoot reports whether code may write to the root file system of the pod of a sandbox.
func WritableRoot(p *corev1.Pod) bool { return viewOf(p, Container).writableRoot() }

// workdir is where the volume of that name is mounted.
func (v view) workdir() string {
	for _, m := range v.container.VolumeMounts {
		if m.Name == VolumeWorkdir {
			return m.MountPath
		}
	}
	return Workdir
}
