package podman

import (
	"os"
	"runtime"

	"github.com/llmsandbox/llmsandbox/internal/engine/dial"
)

// hints are what errors advise a Podman user to do.
var hints = hintsFor(runtime.GOOS, os.Geteuid() == 0)

func hintsFor(goos string, root bool) dial.Hints {
	h := dial.Hints{
		Engine: "Podman",
		Start:  "start its machine (podman machine start), or name another service with CONTAINER_HOST or CONTAINER_CONNECTION",
		Access: "run as the user whose Podman it is",
		TLS:    "Podman's service speaks no TLS: use ssh://, or put a proxy that does in front of it",
	}
	if goos != "linux" {
		return h
	}
	h.Access = "run as the user whose Podman it is, or use this user's own: unset CONTAINER_HOST and systemctl --user start podman.socket"
	h.Start = "start its service (systemctl --user start podman.socket; without systemd: podman system service --time=0 &), or name another with CONTAINER_HOST"
	if root {
		h.Start = "start its service (systemctl start podman.socket; without systemd: podman system service --time=0 &), or name another with CONTAINER_HOST"
	}
	return h
}
