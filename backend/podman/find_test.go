package podman

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// home gives the test an empty home and no variable that Podman knows.
func home(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{envHost, envKey, envConnection, "CONTAINERS_CONF_OVERRIDE", "PODMAN_CONNECTIONS_CONF"} {
		t.Setenv(name, "")
	}
	t.Setenv("HOME", dir)
	t.Setenv("AppData", dir)
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(dir, ".config"))
	t.Setenv("XDG_RUNTIME_DIR", filepath.Join(dir, "run"))
	// The machine's own configuration is not what is tested.
	t.Setenv("CONTAINERS_CONF", filepath.Join(dir, "containers.conf"))
	return dir
}

func put(t *testing.T, file, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

const confTwo = `[engine]
active_service = "two"
[engine.service_destinations.one]
uri = "unix:///one.sock"
[engine.service_destinations.two]
uri = "ssh://u@two:2222/run/two.sock"
identity = "/keys/two"
`

// confForms has what else a containers.conf may hold, and connections in every form.
const confForms = "# containers.conf\n" +
	"top = \"of all\" # said of it\n" +
	"[containers]\r\n" +
	"default_ulimits = [\n  \"nofile=1:2\", # a ] in a comment\n  'nproc=]',\n]\n" +
	"annotations = \"\"\"several\n[lines] = \\\"\"\"\n\"\"\"\n" +
	"[engine]\n" +
	"active_service = \"a.b\"\n" +
	"volume_path = 'C:\\dir'\n" +
	"service_destinations.one = {uri = 'unix:///one.sock'}\n" +
	"  [engine . service_destinations.\"a.b\"]\n" +
	"  uri=\"ssh://u@localhost:22/run/p.sock\"\n" +
	"  is_machine = true # yes\n" +
	"[[farm]]\nname = {x = 1, y = \"}\"}\n"

const jsonThree = `{"Connection":{"Default":"three","Connections":{"three":{"URI":"ssh://core@127.0.0.1:4321/run/p.sock","Identity":"/keys/m","IsMachine":true},
"one":{"URI":"tcp://one:8080"}}}}`

func TestFindPrecedence(t *testing.T) {
	for _, c := range []struct {
		name               string
		options            ClientOptions
		env                map[string]string
		conf, json         string
		host, source, flag string
	}{
		{name: "option", options: ClientOptions{Host: "unix:///o.sock"}, env: map[string]string{envHost: "unix:///e.sock"}, host: "unix:///o.sock", source: "option"},
		{name: "option's connection over the environment", options: ClientOptions{Connection: "one"}, env: map[string]string{envHost: "unix:///e.sock"},
			conf: confTwo, host: "unix:///one.sock", source: `connection "one" (option)`},
		{name: "host over connection", env: map[string]string{envHost: "unix:///e.sock", envConnection: "one"}, conf: confTwo, host: "unix:///e.sock", source: envHost},
		{name: "host's key", env: map[string]string{envHost: "ssh://u@h/p.sock", envKey: "/keys/k"}, host: "ssh://u@h/p.sock", source: envHost, flag: "/keys/k"},
		{name: "connection", env: map[string]string{envConnection: "one"}, conf: confTwo, host: "unix:///one.sock", source: `connection "one" (CONTAINER_CONNECTION)`},
		{name: "default of containers.conf", conf: confTwo, host: "ssh://u@two:2222/run/two.sock", source: `connection "two"`, flag: "/keys/two"},
		{name: "other things of containers.conf", conf: confForms, host: "ssh://u@localhost:22/run/p.sock", source: `connection "a.b"`, flag: "StrictHostKeyChecking=no"},
		{name: "a connection in braces", options: ClientOptions{Connection: "one"}, conf: confForms, host: "unix:///one.sock", source: `connection "one" (option)`},
		{name: "json over containers.conf", conf: confTwo, json: jsonThree, host: "ssh://core@127.0.0.1:4321/run/p.sock", source: `connection "three"`, flag: "StrictHostKeyChecking=no"},
		{name: "json's own host of a name", options: ClientOptions{Connection: "one"}, conf: confTwo, json: jsonThree, host: "tcp://one:8080", source: `connection "one"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := home(t)
			if c.conf != "" {
				put(t, filepath.Join(dir, "containers.conf"), c.conf)
			}
			if c.json != "" {
				file := filepath.Join(dir, "connections.json")
				put(t, file, c.json)
				t.Setenv("PODMAN_CONNECTIONS_CONF", file)
			}
			for k, v := range c.env {
				t.Setenv(k, v)
			}
			f, err := c.options.find()
			if err != nil {
				t.Fatal(err)
			}
			if f.endpoint.Host != c.host || !strings.Contains(f.source, c.source) {
				t.Errorf("%s (%s), want %s (%s)", f.endpoint.Host, f.source, c.host, c.source)
			}
			if c.flag != "" && !slices.Contains(f.endpoint.SSH.Flags, c.flag) {
				t.Errorf("ssh gets %q, want %q among them", f.endpoint.SSH.Flags, c.flag)
			}
			if c.flag == "" && len(f.endpoint.SSH.Flags) > 0 {
				t.Errorf("ssh gets %q, want flag not empty or no Flags", f.endpoint.SSH.Flags)
			}
		})
	}
}

// Files that are read later go over earlier ones, a connection as a whole.
func TestFindOverride(t *testing.T) {
	dir := home(t)
	put(t, filepath.Join(dir, "containers.conf"), confTwo)
	over := filepath.Join(dir, "over.conf")
	put(t, over, "[engine.service_destinations.two]\nuri = \"unix:///over.sock\"\n")
	t.Setenv("CONTAINERS_CONF_OVERRIDE", over)
	f, err := ClientOptions{}.find()
	if err != nil {
		t.Fatal(err)
	}
	want := `connection "two" (default of ` + filepath.Join(dir, "containers.conf") + ")"
	if f.endpoint.Host != "unix:///over.sock" || f.source != want {
		t.Errorf("%s (%s), want unix:///over.sock (%s)", f.endpoint.Host, f.source, want)
	}
}

func TestFindOwnSocket(t *testing.T) {
	dir := home(t)
	f, err := ClientOptions{}.find()
	if runtime.GOOS != "linux" {
		if err == nil || !strings.Contains(err.Error(), "podman machine") {
			t.Fatalf("got %v, want an error containing \"podman machine\"", err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	want := "unix://" + filepath.Join(dir, "run", "podman", "podman.sock")
	if os.Geteuid() == 0 {
		want = "unix:///run/podman/podman.sock"
	}
	if f.endpoint.Host != want || f.source != "default" {
		t.Errorf("%s (%s), want %s", f.endpoint.Host, f.source, want)
	}
}

func TestFindErrors(t *testing.T) {
	for _, c := range []struct {
		name       string
		options    ClientOptions
		env        map[string]string
		conf, json string
		want       string
	}{
		{name: "both", options: ClientOptions{Host: "unix:///a", Connection: "b"}, want: "exclude each other"},
		{name: "key alone", options: ClientOptions{Identity: "/k"}, want: "a key without a Podman host"},
		{name: "key without ssh", options: ClientOptions{Host: "unix:///a", Identity: "/k"}, want: "leave the key out"},
		{name: "unknown", options: ClientOptions{Connection: "x"}, conf: confTwo, want: `"x" (option) is not known; there are: one, two`},
		{name: "unknown among none", env: map[string]string{envConnection: "x"}, want: "(CONTAINER_CONNECTION) is not known; there are none"},
		{name: "default that is not there", conf: "[engine]\nactive_service = \"gone\"\n", want: `"gone" (default of `},
		{name: "broken conf", conf: "[engine\n", want: "containers.conf: toml: line 2: expected '.' or ']' to end table name"},
		{name: "wrong type", conf: "[engine.service_destinations.x]\nis_machine = \"yes\"\n", want: "incompatible types"},
		{name: "broken json", json: "{", want: "unexpected end of JSON input; correct or remove the file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := home(t)
			if c.conf != "" {
				put(t, filepath.Join(dir, "containers.conf"), c.conf)
			}
			if c.json != "" {
				t.Setenv("PODMAN_CONNECTIONS_CONF", filepath.Join(dir, "c.json"))
				put(t, filepath.Join(dir, "c.json"), c.json)
			}
			for k, v := range c.env {
				t.Setenv(k, v)
			}
			_, err := c.options.find()
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

func TestDialStdio(t *testing.T) {
	if got := dialStdio("/run/p.sock"); !slices.Equal(got, []string{"podman", "--url=unix:///run/p.sock", "system", "dial-stdio"}) {
		t.Errorf("got %q, want [\"podman\" \"--url=unix:///run/p.sock\" \"system\" \"dial-stdio\"]", got)
	}
	if got := dialStdio(""); !slices.Equal(got, []string{"podman", "system", "dial-stdio"}) {
		t.Errorf("got %q, want [\"podman\" \"system\" \"dial-stdio\"]", got)
	}
}
