package podman

import (
	"cmp"
	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox/internal/engine/dial"
)

// ClientOptions say which Podman is meant. The zero value is the one that Podman's own
// remote client would use, or else the service of this user on this machine.
type ClientOptions struct {
	// Host is the address of Podman's service, as in CONTAINER_HOST:
	// unix:///PATH, tcp://HOST:PORT or ssh://USER@HOST[:PORT]/PATH. It excludes Connection.
	Host string
	// Identity is the file of the key for an ssh:// Host, as in CONTAINER_SSHKEY. Empty
	// leaves the choice to ssh.
	Identity string
	// Connection is the name of a destination that `podman system connection` knows. It
	// goes over CONTAINER_HOST.
	Connection string
}

// NewClient returns a client of the service that o names. It reads configuration, but
// does not connect: that Podman cannot be reached shows with the first request, as a
// [dial.Error].
func NewClient(opts *ClientOptions) (*client.Client, error) {
	f, err := cmp.Or(opts, &ClientOptions{}).find()
	if err != nil {
		return nil, err
	}
	return f.client()
}

// found is the service that options and environment lead to.
type found struct {
	endpoint dial.Endpoint
	source   string // what named it: "CONTAINER_HOST", `connection "x"`, ...
}

func (f found) client() (*client.Client, error) {
	return f.endpoint.NewClient(client.WithUserAgent("llmsandbox"))
}
