package docker

import (
	"runtime"

	"github.com/llmsandbox/llmsandbox/internal/engine/dial"
)

// hints are what errors advise a Docker user to do.
var hints = hintsFor(runtime.GOOS)

func hintsFor(goos string) dial.Hints {
	h := dial.Hints{
		Engine: "Docker",
		Start:  "start Docker Desktop, or name another engine with DOCKER_HOST or a docker context",
		Access: "run as a user who may use Docker",
		TLS:    "put ca.pem, cert.pem and key.pem that fit into DOCKER_CERT_PATH (or ~/.docker) and set DOCKER_TLS_VERIFY=1, or use a docker context that has them",
	}
	if goos == "linux" {
		h.Start = "start it (sudo systemctl start docker; rootless: systemctl --user start docker), or name another engine with DOCKER_HOST or a docker context"
		h.Access = "join the group docker (sudo usermod -aG docker USER, then log in again; its members are root in effect), or use rootless Docker or Podman"
	}
	return h
}
