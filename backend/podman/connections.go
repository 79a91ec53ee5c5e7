package podman

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

// maxConfig bounds a configuration file, in bytes.
const maxConfig = 1 << 20

// A destination is one service that Podman's remote client knows.
type destination struct {
	URI       string `json:"URI" toml:"uri"`
	Identity  string `json:"Identity" toml:"identity"`
	IsMachine bool   `json:"IsMachine" toml:"is_machine"`
}

// known are the destinations of this user.
type known struct {
	Default      string                 `json:"Default"`
	Destinations map[string]destination `json:"Connections"`
	from         string                 // the file that named the default
}

// endpoint is the destination of that name.
func (k known) endpoint(name, source string) (found, error) {
	d, ok := k.Destinations[name]
	if !ok {
		names := "there are none"
		if len(k.Destinations) > 0 {
			names = "there are: " + strings.Join(slices.Sorted(maps.Keys(k.Destinations)), ", ")
		}
		return found{}, fmt.Errorf("the Podman connection %q (%s) is not known; %s; podman system connection list shows them", name, source, names)
	}
	return endpoint(d, fmt.Sprintf("connection %q (%s)", name, source))
}

// connections reads what Podman's configuration files say: containers.conf, where
// Podman 4 and administrators keep connections, and podman-connections.json, where
// `podman system connection` keeps them since Podman 5. Later files go over earlier
// ones. That a file is not there is no error.
func connections() (known, error) {
	k := known{Destinations: map[string]destination{}}
	config, err := os.UserConfigDir()
	if err != nil {
		config = "" // a user without a home has no files there
	}
	files, err := confFiles(config)
	if err != nil {
		return known{}, err
	}
	for _, file := range files {
		if err := k.readConf(file); err != nil {
			return known{}, err
		}
	}
	file := os.Getenv("PODMAN_CONNECTIONS_CONF")
	if file == "" && config != "" {
		file = filepath.Join(config, "containers", "podman-connections.json")
	}
	return k, k.readJSON(file)
}

// confFiles are the places of containers.conf, the least important first.
func confFiles(config string) ([]string, error) {
	var files []string
	if own := os.Getenv("CONTAINERS_CONF"); own != "" {
		files = append(files, own)
	} else {
		for _, dir := range []string{"/usr/share/containers", "/etc/containers", filepath.Join(config, "containers")} {
			if !filepath.IsAbs(dir) {
				continue
			}
			more, err := filepath.Glob(filepath.Join(dir, "containers.conf.d", "*.conf"))
			if err != nil {
				return nil, fmt.Errorf("configuration of Podman in %s: %w", dir, err)
			}
			files = append(append(files, filepath.Join(dir, "containers.conf")), more...)
		}
	}
	if over := os.Getenv("CONTAINERS_CONF_OVERRIDE"); over != "" {
		files = append(files, over)
	}
	return files, nil
}

// readConf adds what a containers.conf says.
func (k *known) readConf(file string) error {
	data, err := readConfig(file)
	if data == nil || err != nil {
		return err
	}
	var content struct {
		Engine struct {
			Default      string                 `toml:"active_service"`
			Destinations map[string]destination `toml:"service_destinations"`
		} `toml:"engine"`
	}
	meta, err := toml.Decode(string(data), &content)
	if err != nil {
		return fmt.Errorf("configuration of Podman %s: %w; correct the file", file, err)
	}
	maps.Copy(k.Destinations, content.Engine.Destinations)
	if meta.IsDefined("engine", "active_service") {
		k.Default, k.from = content.Engine.Default, file
	}
	return nil
}

// readJSON adds what a podman-connections.json says.
func (k *known) readJSON(file string) error {
	if file == "" {
		return nil
	}
	data, err := readConfig(file)
	if data == nil || err != nil {
		return err
	}
	var content struct{ Connection known }
	if err := json.Unmarshal(data, &content); err != nil {
		return fmt.Errorf("connections of Podman %s: %w; correct or remove the file", file, err)
	}
	maps.Copy(k.Destinations, content.Connection.Destinations)
	if content.Connection.Default != "" {
		k.Default, k.from = content.Connection.Default, file
	}
	return nil
}

// readConfig reads a file that need not be there.
func readConfig(file string) ([]byte, error) {
	info, err := os.Stat(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err == nil && info.Size() > maxConfig {
		return nil, fmt.Errorf("configuration of Podman %s is larger than %d bytes", file, maxConfig)
	}
	if err != nil {
		return nil, fmt.Errorf("configuration of Podman: %w", err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("configuration of Podman: %w", err)
	}
	return data, nil
}
