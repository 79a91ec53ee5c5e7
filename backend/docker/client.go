package docker

import (
	"cmp"
	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox/internal/engine/dial"
)

// ClientOptions say which Docker engine is meant. The zero value is the one that the
// docker command would use.
type ClientOptions struct {
	// Host is the engine's address, as in DOCKER_HOST. It excludes Context.
	Host string
	// Context is the name of a docker context; "default" is what the environment
	// says. It goes over DOCKER_HOST.
	Context string
	// ConfigDir is the directory of config.json and of the contexts. Empty means
	// DOCKER_CONFIG, and without that .docker in the user's home.
	ConfigDir string
}

// NewClient returns a client of the engine that o names. It reads configuration and
// certificates, but does not connect: that the engine cannot be reached shows with
// the first request, as a [dial.Error]. The API's version is agreed on then, unless
// DOCKER_API_VERSION says one.
func NewClient(opts *ClientOptions) (*client.Client, error) {
	f, err := cmp.Or(opts, &ClientOptions{}).find()
	if err != nil {
		return nil, err
	}
	return f.client()
}

// found is the engine that options and environment lead to.
type found struct {
	endpoint dial.Endpoint
	source   string            // what named it: "DOCKER_HOST", `context "x"`, ...
	headers  map[string]string // sent with every request
}

func (f found) client() (*client.Client, error) {
	opts := []client.Opt{client.WithAPIVersionFromEnv(), client.WithUserAgent("llmsandbox")}
	if len(f.headers) > 0 {
		opts = append(opts, client.WithHTTPHeaders(f.headers))
	}
	return f.endpoint.NewClient(opts...)
}
