package podman

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox/backend"
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
	dir := cmp.Or(os.Getenv("XDG_RUNTIME_DIR"), filepath.Join("/run/user", strconv.Itoa(uid)))
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
