package agenthost

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/hostmount"
)

// RootCapabilities are what code that is root may do, about files, users and processes, as the agent has them, and SETPCAP: the
// agent keeps that to itself, and with it takes all others from code that is not root.
var RootCapabilities = []string{"CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "SETFCAP", "SETPCAP"}

// RootUser reports whether a user, as images and containers name them, is root. One that is not named is.
func RootUser(u string) bool {
	name, _, _ := strings.Cut(u, ":")
	id, err := strconv.Atoi(name) // as engines read it: 00 is root, too
	return name == "" || name == "root" || err == nil && id == 0
}

// AsRoot reports whether code is to be root.
func AsRoot(spec backend.Spec) bool { return spec.User != "" && RootUser(spec.User) }

// CheckRoot refuses what no container can give code of the root file system and its users.
func CheckRoot(spec backend.Spec) error {
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

// maxUsers is how many ids a user namespace has at least, as containers have them.
const maxUsers = 1 << 16

// Powers replaces the controls of what was asked for by name: root, and a root file system that can be written to.
func Powers(all []backend.Control, root, writable bool) []backend.Control {
	for i := range all {
		c := &all[i]
		switch {
		case c.Name == "filesystem" && writable:
			c.Detail = "the image's files are the container's own, as far as they are written to"
		case c.Name == "user" && root:
			*c = backend.Control{Name: c.Name, Why: "root was asked for; the agent holds one capability more, so that code can neither trace it nor its connections", Fix: "leave out User (--user)"}
		case c.Name == "capabilities" && root:
			c.Detail = "root has those over files, users and processes; other users have none"
		}
	}
	return all
}
