package docker

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/moby/moby/client"
)

// TestPrecedence compares with what is expected and, where there is a docker command,
// with what that finds.
func TestPrecedence(t *testing.T) {
	const current = `{"currentContext": "one"}`
	for _, c := range []struct {
		name    string
		options ClientOptions
		env     map[string]string
		config  string
		want    string
		source  string
		modern  bool // the docker command of Debian 12, 20.10, fails here
	}{
		{name: "nothing said", want: client.DefaultDockerHost, source: "default"},
		{name: "configuration", config: current, want: "unix:///one.sock", source: `context "one" (`},
		{name: "DOCKER_CONTEXT over configuration", config: current, env: map[string]string{"DOCKER_CONTEXT": "two"},
			want: "tcp://two.example:2376", source: `context "two" (DOCKER_CONTEXT)`},
		{name: "DOCKER_CONTEXT default", config: current, env: map[string]string{"DOCKER_CONTEXT": "default"},
			want: client.DefaultDockerHost, source: "default"},
		{name: "DOCKER_HOST over DOCKER_CONTEXT", config: current, env: map[string]string{"DOCKER_CONTEXT": "two", "DOCKER_HOST": "unix:///env.sock"},
			want: "unix:///env.sock", source: "DOCKER_HOST"},
		{name: "option context over DOCKER_HOST", options: ClientOptions{Context: "two"}, env: map[string]string{"DOCKER_HOST": "unix:///env.sock"},
			want: "tcp://two.example:2376", source: `context "two" (option)`},
		{name: "option context default", options: ClientOptions{Context: "default"}, config: current, env: map[string]string{"DOCKER_HOST": "unix:///env.sock"},
			want: "unix:///env.sock", source: "DOCKER_HOST"},
		{name: "option host over all", options: ClientOptions{Host: "unix:///option.sock"}, config: current,
			env: map[string]string{"DOCKER_HOST": "unix:///env.sock", "DOCKER_CONTEXT": "two"}, want: "unix:///option.sock", source: "option"},
		{name: "a context by its path over ssh", options: ClientOptions{Context: "three"}, want: "ssh://me@three.example:22/run/docker.sock", source: `context "three" (option)`, modern: true},
		{name: "short forms", env: map[string]string{"DOCKER_HOST": "somewhere"}, want: "tcp://somewhere:2375", source: "DOCKER_HOST"},
		{name: "ssh", env: map[string]string{"DOCKER_HOST": "ssh://me@there"}, want: "ssh://me@there", source: "DOCKER_HOST"},
		{name: "spaces", env: map[string]string{"DOCKER_HOST": " unix:///env.sock "}, want: "unix:///env.sock", source: "DOCKER_HOST"},
		{name: "empty variables", config: current, env: map[string]string{"DOCKER_CONTEXT": ""}, want: "unix:///one.sock", source: `context "one" (`, modern: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := fakeHome(t)
			if c.config != "" {
				writeConfig(t, dir, c.config)
			}
			writeContext(t, dir, "one", "unix:///one.sock", nil)
			writeContext(t, dir, "two", "tcp://two.example:2376", nil)
			writeContext(t, dir, "three", "ssh://me@three.example:22/run/docker.sock", nil)
			for k, v := range c.env {
				t.Setenv(k, v)
			}
			f, err := c.options.find()
			if err != nil {
				t.Fatal(err)
			}
			if f.endpoint.Host != c.want || !strings.HasPrefix(f.source, c.source) {
				t.Errorf("found %s by %s, want %s by %s", f.endpoint.Host, f.source, c.want, c.source)
			}
			api, err := NewClient(&c.options)
			if err != nil {
				t.Fatal(err)
			}
			if err := api.Close(); err != nil {
				t.Error(err)
			}
			compareWithCommand(t, c.options, c.want, c.modern)
		})
	}
}

// compareWithCommand asks the docker command which engine it would use.
func compareWithCommand(t *testing.T, o ClientOptions, want string, modern bool) {
	t.Helper()
	docker, err := exec.LookPath("docker")
	if err != nil {
		t.Log("no docker command to compare with")
		return
	}
	ask := exec.Command(docker, "--version")
	ask.Env = []string{"PATH=" + os.Getenv("PATH")}
	if version, err := ask.Output(); err != nil {
		t.Fatal(err)
	} else if modern && strings.HasPrefix(string(version), "Docker version 20.") {
		t.Logf("not compared with %s", version)
		return
	}
	var args []string
	if o.Host != "" {
		args = append(args, "--host", o.Host)
	}
	if o.Context != "" {
		args = append(args, "--context", o.Context)
	}
	out, err := exec.Command(docker, append(args, "context", "inspect")...).Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("docker context inspect: %v: %s", err, exit.Stderr)
		}
		t.Fatal(err)
	}
	var contexts []struct {
		Endpoints map[string]struct{ Host string }
	}
	if err := json.Unmarshal(out, &contexts); err != nil {
		t.Fatal(err)
	}
	if got := contexts[0].Endpoints["docker"].Host; got != want {
		t.Errorf("the docker command finds %s, want %s", got, want)
	}
}

func TestConfigDir(t *testing.T) {
	home := fakeHome(t)
	other, third := t.TempDir(), t.TempDir()
	for dir, host := range map[string]string{home: "unix:///home.sock", other: "unix:///other.sock", third: "unix:///third.sock"} {
		writeConfig(t, dir, `{"currentContext":"c"}`)
		writeContext(t, dir, "c", host, nil)
	}
	check := func(o ClientOptions, want string) {
		t.Helper()
		f, err := o.find()
		if err != nil {
			t.Fatal(err)
		}
		if f.endpoint.Host != want {
			t.Errorf("found %s, want %s", f.endpoint.Host, want)
		}
	}
	check(ClientOptions{}, "unix:///home.sock")
	t.Setenv("DOCKER_CONFIG", other)
	check(ClientOptions{}, "unix:///other.sock")
	check(ClientOptions{ConfigDir: third}, "unix:///third.sock")
}

func TestThatNothingIsFound(t *testing.T) {
	for _, c := range []struct {
		name    string
		options ClientOptions
		env     map[string]string
		config  string
		words   []string
	}{
		{name: "both", options: ClientOptions{Host: "unix:///x", Context: "y"}, words: []string{"exclude each other"}},
		{name: "unknown context", options: ClientOptions{Context: "nope"}, words: []string{`"nope" (option)`, "no such context", "known are: default, one"}},
		{name: "unknown context of the environment", env: map[string]string{"DOCKER_CONTEXT": "nope"}, words: []string{"DOCKER_CONTEXT"}},
		{name: "unknown current context", config: `{"currentContext":"nope"}`, words: []string{"config.json", "no such context"}},
		{name: "bad host", env: map[string]string{"DOCKER_HOST": "gopher://x"}, words: []string{"gopher://x", "DOCKER_HOST", "it has to look like"}},
		{name: "bad configuration", config: `{"currentContext":`, words: []string{"config.json", "correct or remove"}},
		{name: "damaged context", options: ClientOptions{Context: "broken"}, words: []string{`"broken"`, "meta.json", "docker context create"}},
		{name: "context of another kind", options: ClientOptions{Context: "swarm"}, words: []string{`"swarm"`, "names no Docker engine"}},
		{name: "huge context", options: ClientOptions{Context: "huge"}, words: []string{`"huge"`, "larger than"}},
		{name: "headers", env: map[string]string{"DOCKER_CUSTOM_HEADERS": "a=b,c"}, words: []string{"DOCKER_CUSTOM_HEADERS", "field 2"}},
		{name: "API version", env: map[string]string{"DOCKER_API_VERSION": "new"}, words: []string{"invalid API version"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := fakeHome(t)
			writeContext(t, dir, "one", "unix:///one.sock", nil)
			write(t, metaPath(dir, "broken"), []byte("{"))
			write(t, metaPath(dir, "swarm"), []byte(`{"Name":"","Endpoints":{"kubernetes":{"Host":"x"}}}`))
			write(t, metaPath(dir, "huge"), make([]byte, maxContextFile+1))
			if c.config != "" {
				writeConfig(t, dir, c.config)
			}
			for k, v := range c.env {
				t.Setenv(k, v)
			}
			_, err := NewClient(&c.options)
			if err == nil {
				t.Fatal("no error: got no error, want an error")
			}
			for _, w := range c.words {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q lacks %q", err, w)
				}
			}
			found := Diagnose(t.Context(), &c.options)
			if last := found[len(found)-1]; last.Fix == "" || !strings.Contains(last.Detail, c.words[0]) {
				t.Errorf("doctor says %+v, want Fix not empty, strings.Contains(last.Detail, c.words[0]) = true", last)
			}
		})
	}
}

// TestContextWithoutHost is what docker context create without a host makes.
func TestContextWithoutHost(t *testing.T) {
	dir := fakeHome(t)
	writeContext(t, dir, "empty", "", nil)
	f, err := ClientOptions{Context: "empty"}.find()
	if err != nil {
		t.Fatal(err)
	}
	if f.endpoint.Host != client.DefaultDockerHost {
		t.Errorf("found %s, want DefaultDockerHost", f.endpoint.Host)
	}
}

func TestHintsOfSystem(t *testing.T) {
	for goos, word := range map[string]string{"linux": "systemctl", "windows": "Docker Desktop", "darwin": "Docker Desktop"} {
		if h := hintsFor(goos); !strings.Contains(h.Start, word) || h.Access == "" {
			t.Errorf("%s: %+v, want Start containing %q, Access not empty", goos, h, word)
		}
	}
}
