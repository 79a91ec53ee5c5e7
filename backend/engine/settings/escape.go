package settings

import (
	"path"
	"slices"
	"strings"
)

// What gives the whole host away to whoever can write to it; a socket also to who can
// only read it, as a read-only mount does not keep anyone from connecting. Only the
// usual places are known: a link elsewhere that leads to one is not noticed.
var (
	engineSockets = strings.Fields("docker.sock podman.sock containerd.sock crio.sock buildkitd.sock dockershim.sock")
	socketFolders = strings.Fields("/run /run/docker /run/podman /run/containerd /run/crio /run/user /run/buildkit /var /var/run")
	hostFolders   = strings.Fields("/ /bin /boot /dev /etc /home /lib /lib64 /opt /proc /root /sbin /sys /usr /var/lib /var/lib/docker /var/lib/containers /var/lib/containerd /var/spool/cron")
)

// escapes tells whether a mount of the host's source is a way out of the sandbox.
func escapes(source string, readOnly bool) bool {
	p := path.Clean(source)
	if slices.Contains(engineSockets, path.Base(p)) {
		return true
	}
	p = strings.TrimPrefix(p, "/var/run/")
	if p != path.Clean(source) {
		p = "/run/" + p
	}
	if p == "/" || slices.Contains(socketFolders, p) {
		return true
	}
	if strings.HasPrefix(p, "/run/user/") && strings.Count(p, "/") <= 4 {
		return true // a user's runtime folder holds the sockets of rootless engines
	}
	return !readOnly && slices.ContainsFunc(hostFolders, func(f string) bool {
		return p == f || f != "/" && f != "/home" && f != "/opt" && f != "/var/lib" && inside(p, f)
	})
}
