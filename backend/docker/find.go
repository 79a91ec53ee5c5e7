package docker

import (
	"cmp"
	"crypto/tls"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/user"
	"path/filepath"
	"strings"

	"github.com/docker/cli/cli/config"
	"github.com/docker/cli/cli/config/configfile"
	"github.com/docker/cli/opts"
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

// defaultContext is the context that stands for the environment.
const defaultContext = "default"

// find returns which engine is meant, with the docker command's precedence: options,
// DOCKER_HOST, DOCKER_CONTEXT, the current context of config.json, the default socket.
func (o ClientOptions) find() (found, error) {
	if o.Host != "" && o.Context != "" {
		return found{}, errors.New("a Docker host and a Docker context exclude each other: name one of them")
	}
	dir, err := o.configDir()
	if err != nil {
		return found{}, err
	}
	config, err := loadConfig(dir)
	if err != nil {
		return found{}, err
	}
	headers, err := customHeaders(config)
	if err != nil {
		return found{}, err
	}
	f := found{headers: headers}
	name, source := o.contextName(config)
	var host string
	var session *tls.Config
	if name == defaultContext {
		host, session, f.source, err = o.fromEnvironment(dir)
	} else {
		f.source = fmt.Sprintf("context %q (%s)", name, source)
		host, session, err = readContext(dir, name, source)
	}
	if err != nil {
		return found{}, err
	}
	f.endpoint = dial.Endpoint{Host: host, TLS: session, SSH: dial.SSH{Remote: dialStdio}, Hints: hints}
	return f, nil
}

// contextName is the context in force, and what named it.
func (o ClientOptions) contextName(config *configfile.ConfigFile) (name, source string) {
	switch {
	case o.Context != "":
		return o.Context, "option"
	case o.Host != "", os.Getenv(client.EnvOverrideHost) != "":
		return defaultContext, ""
	case os.Getenv("DOCKER_CONTEXT") != "":
		return os.Getenv("DOCKER_CONTEXT"), "DOCKER_CONTEXT"
	case config.CurrentContext != "":
		return config.CurrentContext, config.Filename
	}
	return defaultContext, ""
}

// fromEnvironment is the default context: the host of option or environment, and the
// environment's certificates.
func (o ClientOptions) fromEnvironment(dir string) (host string, _ *tls.Config, source string, _ error) {
	host, source = o.Host, "option"
	if host == "" {
		host, source = os.Getenv(client.EnvOverrideHost), client.EnvOverrideHost
	}
	verify := os.Getenv(client.EnvTLSVerify) != ""
	secure := verify || os.Getenv("DOCKER_TLS") != ""
	if host == "" {
		source = "default"
	}
	parsed, err := opts.ParseHost(secure, host)
	if err != nil {
		return "", nil, "", fmt.Errorf("the Docker host %q (%s) cannot be used: %w: it has to look like unix:///PATH, tcp://HOST:PORT or ssh://USER@HOST", host, source, err)
	}
	if !secure || !overTCP(parsed) {
		return parsed, nil, source, nil
	}
	session, err := environmentTLS(dir, verify)
	if err != nil {
		return "", nil, "", err
	}
	return parsed, session, source, nil
}

// dialStdio is what is run on the other side of ssh.
func dialStdio(socket string) []string {
	if socket == "" {
		return []string{"docker", "system", "dial-stdio"}
	}
	return []string{"docker", "--host=unix://" + socket, "system", "dial-stdio"}
}

// configDir is the directory of Docker's configuration.
func (o ClientOptions) configDir() (string, error) {
	if o.ConfigDir != "" {
		return o.ConfigDir, nil
	}
	if dir := os.Getenv(config.EnvOverrideConfigDir); dir != "" {
		return dir, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		// Without HOME the docker command asks the user database.
		u, uerr := user.Current()
		if uerr != nil {
			return "", fmt.Errorf("find Docker's configuration: %w; set HOME or DOCKER_CONFIG", err)
		}
		home = u.HomeDir
	}
	return filepath.Join(home, ".docker"), nil
}

// loadConfig reads config.json. That there is none is no error. The docker command
// warns of one that it cannot read and goes on, perhaps to another engine than its
// user meant; a library has nowhere to warn.
func loadConfig(dir string) (*configfile.ConfigFile, error) {
	c, err := config.Load(dir)
	if err != nil {
		return nil, fmt.Errorf("read Docker's configuration: %w; correct or remove the file, or name another folder with DOCKER_CONFIG", err)
	}
	return c, nil
}

// customHeaders are the headers that are to go with every request: those of
// DOCKER_CUSTOM_HEADERS (NAME=VALUE, comma-separated), else those of config.json.
func customHeaders(c *configfile.ConfigFile) (map[string]string, error) {
	const name = "DOCKER_CUSTOM_HEADERS"
	value := os.Getenv(name)
	if value == "" {
		return c.HTTPHeaders, nil
	}
	fields, err := csv.NewReader(strings.NewReader(value)).Read()
	if err == io.EOF {
		return c.HTTPHeaders, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s is no list of NAME=VALUE separated by commas: %w", name, err)
	}
	headers := make(map[string]string, len(fields))
	for _, field := range fields {
		k, v, ok := strings.Cut(field, "=")
		if k = strings.TrimSpace(k); !ok || k == "" {
			// The value may be a token, so it is not shown.
			return nil, fmt.Errorf("%s: field %d is not NAME=VALUE", name, len(headers)+1)
		}
		headers[http.CanonicalHeaderKey(k)] = v
	}
	return headers, nil
}
