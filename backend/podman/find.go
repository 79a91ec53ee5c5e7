package podman

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/engine/dial"
)

// The variables of Podman's remote client.
const (
	envHost       = "CONTAINER_HOST"
	envKey        = "CONTAINER_SSHKEY"
	envConnection = "CONTAINER_CONNECTION"
)

// ownService is the source of a host that nothing named.
const ownService = "default"

// find returns which service is meant, with the precedence of Podman's remote client:
// options, CONTAINER_HOST, CONTAINER_CONNECTION, the default connection, and then the
// socket of this user's own service.
func (o ClientOptions) find() (found, error) {
	if o.Host != "" && o.Connection != "" {
		return found{}, errors.New("a Podman host and a Podman connection exclude each other: name one of them")
	}
	if o.Identity != "" && o.Host == "" {
		return found{}, errors.New("a key without a Podman host: name the host it is for; a connection has its own")
	}
	switch {
	case o.Host != "":
		return endpoint(destination{URI: o.Host, Identity: o.Identity}, "option")
	case o.Connection != "":
		return named(o.Connection, "option")
	case os.Getenv(envHost) != "":
		return endpoint(destination{URI: os.Getenv(envHost), Identity: os.Getenv(envKey)}, envHost)
	case os.Getenv(envConnection) != "":
		return named(os.Getenv(envConnection), envConnection)
	}
	known, err := connections()
	if err != nil {
		return found{}, err
	}
	if known.Default != "" {
		return known.endpoint(known.Default, "default of "+known.from)
	}
	socket, err := ownSocket()
	if err != nil {
		return found{}, err
	}
	return endpoint(destination{URI: "unix://" + socket}, ownService)
}

// named is the connection of that name.
func named(name, source string) (found, error) {
	known, err := connections()
	if err != nil {
		return found{}, err
	}
	return known.endpoint(name, source)
}

// ownSocket is where this user's service listens.
func ownSocket() (string, error) {
	if runtime.GOOS != "linux" {
		return "", fmt.Errorf("%w: Podman runs in a virtual machine on this system, and no connection to one is configured: make one with podman machine init, start it with podman machine start", backend.ErrUnsupported)
	}
	uid := os.Geteuid()
	if uid == 0 {
		return "/run/podman/podman.sock", nil
	}
	dir := os.Getenv("XDG_RUNTIME_DIR")
	if dir == "" {
		dir = filepath.Join("/run/user", strconv.Itoa(uid))
	}
	return filepath.Join(dir, "podman", "podman.sock"), nil
}

// endpoint is how to get to a destination that source named.
func endpoint(d destination, source string) (found, error) {
	e := dial.Endpoint{Host: d.URI, Hints: hints}
	scheme, _, _ := strings.Cut(d.URI, "://")
	if scheme != "ssh" {
		if d.Identity != "" {
			return found{}, fmt.Errorf("the Podman host %q (%s) is not reached by ssh: leave the key out", d.URI, source)
		}
		return found{endpoint: e, source: source}, nil
	}
	e.SSH = dial.SSH{Remote: dialStdio}
	if d.Identity != "" {
		// That key and no other: an agent with many keys is turned away.
		e.SSH.Flags = append(e.SSH.Flags, "-i", d.Identity, "-o", "IdentitiesOnly=yes")
	}
	if d.IsMachine && loopback(d.URI) {
		// A machine of podman machine is made anew with another key under the same
		// address, which is this computer's own.
		e.SSH.Flags = append(e.SSH.Flags, "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile="+os.DevNull, "-o", "LogLevel=ERROR")
	}
	return found{endpoint: e, source: source}, nil
}

func loopback(uri string) bool {
	u, err := url.Parse(uri)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// dialStdio is what is run on the other side of ssh.
func dialStdio(socket string) []string {
	if socket == "" {
		return []string{"podman", "system", "dial-stdio"}
	}
	return []string{"podman", "--url=unix://" + socket, "system", "dial-stdio"}
}
