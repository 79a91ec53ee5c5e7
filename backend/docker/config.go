package docker

import (
	"encoding/csv"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/user"
	"path/filepath"
	"strings"

	"github.com/docker/cli/cli/config"
	"github.com/docker/cli/cli/config/configfile"
)

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
