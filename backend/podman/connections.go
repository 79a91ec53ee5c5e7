package podman

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxConfig bounds a configuration file, in bytes.
const maxConfig = 1 << 20

// A destination is one service that Podman's remote client knows.
type destination struct {
	URI       string `json:"URI"`
	Identity  string `json:"Identity"`
	IsMachine bool   `json:"IsMachine"`
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
			all := make([]string, 0, len(k.Destinations))
			for n := range k.Destinations {
				all = append(all, n)
			}
			slices.Sort(all)
			names = "there are: " + strings.Join(all, ", ")
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
	values, err := parseTOML(string(data))
	if err != nil {
		return fmt.Errorf("configuration of Podman %s: %w; correct the file", file, err)
	}
	for _, v := range values {
		if len(v.key) < 2 || v.key[0] != "engine" {
			continue
		}
		switch {
		case len(v.key) == 2 && v.key[1] == "active_service":
			k.Default, k.from = v.text, file
		case v.key[1] == "service_destinations" && (v.kind == inlineTOML || len(v.key) == 3):
			return fmt.Errorf("configuration of Podman %s: line %d: a connection in braces is not understood here: write it as a table [engine.service_destinations.NAME]", file, v.line)
		case len(v.key) == 4 && v.key[1] == "service_destinations":
			d := k.Destinations[v.key[2]]
			switch v.key[3] {
			case "uri":
				d.URI = v.text
			case "identity":
				d.Identity = v.text
			case "is_machine":
				d.IsMachine = v.text == "true"
			}
			k.Destinations[v.key[2]] = d
		}
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
	for name, d := range content.Connection.Destinations {
		k.Destinations[name] = d
	}
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
