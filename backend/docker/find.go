package docker

import (
	"crypto/tls"
	"errors"
	"fmt"
	"os"

	"github.com/docker/cli/cli/config/configfile"
	"github.com/docker/cli/opts"
	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox/internal/engine/dial"
)

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
