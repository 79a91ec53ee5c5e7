package cli

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
)

func TestUnenforced(t *testing.T) {
	controls := func(names ...string) []backend.Control {
		list := []backend.Control{{Name: "disk", Enforced: true}, {Name: "seccomp"}}
		for _, name := range names {
			list = append(list, backend.Control{Name: name, Why: "no cgroup"})
		}
		return list
	}
	for want, c := range map[string]struct {
		found backend.Capabilities
		place place
	}{
		"": {backend.Capabilities{Backend: "docker", Controls: append(controls(), backend.Control{Name: "cpus", Why: backend.NotAsked})}, place{Backend: "docker"}},
		"warning: memory limits are not enforced here; run 'llmsandbox doctor --backend docker' to fix": {
			backend.Capabilities{Backend: "docker", Controls: controls("memory")}, place{Backend: "docker"},
		},
		"warning: memory, CPU and process limits are not enforced here; run 'llmsandbox doctor' to fix": {
			backend.Capabilities{Backend: "other", Controls: controls("memory", "cpus", "pids")}, place{Backend: localName},
		},
	} {
		if got := unenforced(c.found, &c.place); got != want {
			t.Errorf("%+v: %q, want %q", c.found, got, want)
		}
	}
}

func TestDue(t *testing.T) {
	const message = "a warning"
	now := time.Now()
	for name, c := range map[string]struct {
		content string
		age     time.Duration
		dir     string // beside the test's own
		want    bool
	}{
		"never":             {want: true},
		"just now":          {content: message, want: false},
		"hours ago":         {content: message, age: warnAgain - time.Minute, want: false},
		"a day ago":         {content: message, age: warnAgain, want: true},
		"in the future":     {content: message, age: -time.Hour, want: true},
		"another message":   {content: "another", want: true},
		"no such directory": {dir: "missing", want: true},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), c.dir, "warned")
			if c.content != "" {
				if err := os.WriteFile(path, []byte(c.content), 0o600); err != nil {
					t.Fatal(err)
				}
				if err := os.Chtimes(path, now.Add(-c.age), now.Add(-c.age)); err != nil {
					t.Fatal(err)
				}
			}
			if got := due(path, message, now); got != c.want {
				t.Errorf("due = %v, want %v", got, c.want)
			}
			if c.dir != "" {
				return
			}
			if due(path, message, time.Now()) {
				t.Error("due again at once, want once a day")
			}
		})
	}
}
