package mcpenv

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend/engine/settings"
)

func options(pairs ...string) []Option {
	var all []Option
	for _, pair := range pairs {
		key, value, _ := strings.Cut(pair, "=")
		all = append(all, Option{key, value})
	}
	return all
}

// TestAcceptance100Environment is the table of all variables.
func TestAcceptance100Environment(t *testing.T) {
	for _, c := range []struct {
		name    string
		env     string // NAME=VALUE, separated by |
		backend string // docker where there is none
		given   string // flags, separated by |
		want    Settings
		fails   string // a word of the error
	}{
		{name: "nothing"},
		{name: "blanks", env: "SANDBOX_MEMORY= |SANDBOX_MEM_LIMIT=|SANDBOX_CPUS= |SANDBOX_CPU_COUNT=|SANDBOX_PRIVILEGED= |SANDBOX_CAP_DROP=,|COMMIT_CONTAINER=|KEEP_TEMPLATE= "},
		{name: "nothing of Kubernetes's", env: "NAMESPACE=x|KUBECONFIG=/none"},

		{name: "memory", env: "SANDBOX_MEMORY=256m", want: Settings{Memory: "256m"}},
		{name: "memory, locally", env: "SANDBOX_MEMORY=1g", backend: "local", want: Settings{Memory: "1g"}},
		{name: "the limit wins", env: "SANDBOX_MEMORY=256m|SANDBOX_MEM_LIMIT=512m", want: Settings{Memory: "512m"}},
		{name: "a blank limit does not", env: "SANDBOX_MEMORY=256m|SANDBOX_MEM_LIMIT= ", want: Settings{Memory: "256m"}},
		{name: "the flag wins", env: "SANDBOX_MEMORY=256m|SANDBOX_CPUS=2|SANDBOX_CPU_COUNT=3", given: "memory|cpus"},
		{name: "no size", env: "SANDBOX_MEMORY=lots", fails: "SANDBOX_MEMORY"},
		{name: "no limit that is none", env: "SANDBOX_MEM_LIMIT=0", fails: "SANDBOX_MEM_LIMIT"},
		{name: "no size, though the flag wins", env: "SANDBOX_MEMORY=lots", given: "memory", fails: "SANDBOX_MEMORY"},

		{name: "half a CPU", env: "SANDBOX_CPUS=0.5", want: Settings{CPUs: "0.5"}},
		{name: "a decimal", env: "SANDBOX_CPUS=1e0", want: Settings{CPUs: "1"}},
		{name: "the count wins", env: "SANDBOX_CPUS=0.5|SANDBOX_CPU_COUNT=2", backend: "local", want: Settings{CPUs: "2"}},
		{name: "a blank count does not", env: "SANDBOX_CPUS=0.5|SANDBOX_CPU_COUNT= ", want: Settings{CPUs: "0.5"}},
		{name: "a count is whole", env: "SANDBOX_CPU_COUNT=1.5", fails: "whole number"},
		{name: "a count is positive", env: "SANDBOX_CPU_COUNT=-1", fails: "whole number"},
		{name: "a count is more than none", env: "SANDBOX_CPU_COUNT=0", fails: "whole number"},
		{name: "no number", env: "SANDBOX_CPUS=two", fails: "SANDBOX_CPUS"},
		{name: "not a number", env: "SANDBOX_CPUS=nan", fails: "SANDBOX_CPUS"},
		{name: "no CPU", env: "SANDBOX_CPUS=0", fails: "SANDBOX_CPUS"},
		{name: "all CPUs there are", env: "SANDBOX_CPUS=inf", fails: "SANDBOX_CPUS"},

		{name: "a network", env: "SANDBOX_NETWORK_MODE=bridge", want: Settings{Options: options("network_mode=bridge")}},
		{name: "no network", env: "SANDBOX_NETWORK_MODE=none"},
		{name: "no network, locally", env: "SANDBOX_NETWORK_MODE=none", backend: "local"},
		{name: "a network, locally", env: "SANDBOX_NETWORK_MODE=bridge", backend: "local", fails: "--network"},
		{name: "a network by a flag", env: "SANDBOX_NETWORK_MODE=bridge", backend: "local", given: "network"},

		{name: "lists", env: "SANDBOX_CAP_DROP=ALL, NET_RAW ,|SANDBOX_SECURITY_OPT=no-new-privileges:true,apparmor=docker-default",
			want: Settings{Options: options("cap_drop=ALL", "cap_drop=NET_RAW", "security_opt=no-new-privileges:true", "security_opt=apparmor=docker-default")}},
		{name: "lists that hold, locally", env: "SANDBOX_CAP_DROP=ALL|SANDBOX_SECURITY_OPT=no-new-privileges", backend: "local"},
		{name: "an option, locally", env: "SANDBOX_SECURITY_OPT=no-new-privileges,apparmor=x", backend: "local", fails: "SANDBOX_SECURITY_OPT"},
		{name: "new privileges, locally", env: "SANDBOX_SECURITY_OPT=no-new-privileges:false", backend: "local", fails: "SANDBOX_SECURITY_OPT"},
		{name: "an option by a flag", env: "SANDBOX_CAP_DROP=ALL|SANDBOX_PRIVILEGED=1", given: "runtime-option cap_drop|runtime-option privileged"},

		{name: "privileged", env: "SANDBOX_PRIVILEGED=true", want: Settings{Options: options("privileged=true")}},
		{name: "not privileged", env: "SANDBOX_PRIVILEGED=off", want: Settings{Options: options("privileged=false")}},
		{name: "privileged, locally", env: "SANDBOX_PRIVILEGED=YES", backend: "local", fails: "SANDBOX_PRIVILEGED"},
		{name: "not privileged, locally", env: "SANDBOX_PRIVILEGED=0", backend: "local"},
		{name: "read-only", env: "SANDBOX_READ_ONLY=On", want: Settings{Options: options("read_only=true")}},
		{name: "not read-only", env: "SANDBOX_READ_ONLY=no", want: Settings{Options: options("read_only=false")}},
		{name: "read-only, locally", env: "SANDBOX_READ_ONLY=1", backend: "local"},
		{name: "not read-only, locally", env: "SANDBOX_READ_ONLY=0", backend: "local", fails: "SANDBOX_READ_ONLY"},
		{name: "neither", env: "SANDBOX_PRIVILEGED=maybe", fails: "SANDBOX_PRIVILEGED must be one of: true, 1, yes, on, false, 0, no, off"},
		{name: "nor here", env: "COMMIT_CONTAINER=maybe", fails: "COMMIT_CONTAINER must be one of: true, 1, yes, on, false, 0, no, off"},

		{name: "commit", env: "COMMIT_CONTAINER=true", want: Settings{Commit: true}},
		{name: "no commit", env: "COMMIT_CONTAINER=false", backend: "local"},
		{name: "commit, locally", env: "COMMIT_CONTAINER=true", backend: "local", fails: "COMMIT_CONTAINER"},
		{name: "commit by a flag", env: "COMMIT_CONTAINER=true", backend: "local", given: "commit"},
		{name: "keep images", env: "KEEP_TEMPLATE=true", backend: "local"},
		{name: "keep none", env: "KEEP_TEMPLATE=false", want: Settings{RemoveImage: true}},
		{name: "keep none, locally", env: "KEEP_TEMPLATE=false", backend: "local", fails: "KEEP_TEMPLATE"},

		{name: "Kubernetes", env: "COMMIT_CONTAINER=false|NAMESPACE= x ", backend: "kubernetes", want: Settings{Namespace: "x"}},
		{name: "Kubernetes by a variable", env: "BACKEND=Kubernetes ", backend: "kubernetes", want: Settings{Namespace: "default"}},
		{name: "Kubernetes by a variable, with a namespace", env: "BACKEND=kubernetes|NAMESPACE=x", backend: "kubernetes", want: Settings{Namespace: "x"}},
		{name: "Kubernetes by a flag", env: "BACKEND=kubernetes", backend: "kubernetes", given: "backend"},
		{name: "Kubernetes by its own variable", backend: "kubernetes"},
		{name: "Kubernetes, its namespace by a flag", env: "BACKEND=kubernetes|NAMESPACE=x", backend: "kubernetes", given: "namespace"},
		{name: "another, with a namespace", env: "BACKEND=docker|NAMESPACE=x"},
		{name: "commit, on Kubernetes", env: "COMMIT_CONTAINER=true", backend: "kubernetes", fails: "COMMIT_CONTAINER"},
		{name: "keep images, on Kubernetes", env: "KEEP_TEMPLATE=true", backend: "kubernetes"},
		{name: "keep none, on Kubernetes", env: "KEEP_TEMPLATE=false", backend: "kubernetes", fails: "KEEP_TEMPLATE"},
		{name: "Kubernetes with a limit", env: "SANDBOX_MEMORY=1g", backend: "kubernetes", fails: "kubernetes"},
		{name: "Kubernetes with what is off", env: "SANDBOX_PRIVILEGED=false", backend: "kubernetes", fails: "kubernetes"},
		{name: "Kubernetes with a blank", env: "SANDBOX_MEMORY= ", backend: "kubernetes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			env := map[string]string{}
			for line := range strings.SplitSeq(c.env, "|") {
				name, value, _ := strings.Cut(line, "=")
				env[name] = value
			}
			if c.backend == "" {
				c.backend = "docker"
			}
			given := func(flag string) bool { return slices.Contains(strings.Split(c.given, "|"), flag) }
			got, err := Read(func(name string) string { return env[name] }, c.backend, given)
			if c.fails != "" {
				if !errors.Is(err, llmsandbox.ErrInvalid) || !strings.Contains(err.Error(), c.fails) {
					t.Errorf("%v, want an error with %q", err, c.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			// What is passed on must be known there.
			var s settings.Settings
			for _, o := range got.Options {
				if err := s.Set(o.Key, o.Value); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestBackend(t *testing.T) {
	for in, want := range map[string]string{"": "", "  ": "", "Docker ": "docker", "micromamba": "micromamba"} {
		if got := Backend(func(string) string { return in }); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestUnknown(t *testing.T) {
	got := Unknown([]string{"SANDBOX_MEMROY=1g", "SANDBOX_MEMORY=1g", "HOME=/", "SANDBOX_=", "XSANDBOX_A=1"})
	if want := []string{"SANDBOX_", "SANDBOX_MEMROY"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
