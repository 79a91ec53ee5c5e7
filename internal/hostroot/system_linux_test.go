package hostroot

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestSystem: what packages need of the host's accounts says nothing of its people and their passwords.
func TestSystem(t *testing.T) {
	cache := t.TempDir()
	layer, binds, err := System(cache)
	if err != nil {
		t.Fatal(err)
	}
	again, _, err := System(cache)
	if err != nil || again != layer {
		t.Errorf("the second time: %q, %v, want the same layer %q", again, err, layer)
	}
	if _, err := os.Stat("/var/lib/dpkg/status"); (err == nil) != (len(binds) > 0) {
		t.Errorf("%d directories of the package manager; its list: %v", len(binds), err)
	}
	for name, root := range map[string]string{"passwd": "root:x:0:0:root:/root:/bin/bash\n", "group": "root:x:0:\n"} {
		text, err := os.ReadFile(filepath.Join(layer, "etc", name))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(text), root) || !strings.Contains(string(text), "\nsandbox:x:1000:") {
			t.Errorf("%s: %.100q, want root first, and sandbox", name, text)
		}
		for line := range strings.Lines(string(text)) {
			f := strings.Split(strings.TrimSuffix(line, "\n"), ":")
			id, err := strconv.Atoi(f[2])
			if err != nil || f[1] != "x" || id >= 1000 && !strings.Contains(synthetic[name], line) {
				t.Errorf("%s: %q, want no password and no account of a person", name, line)
			}
			if !strings.Contains(synthetic[name], "\n"+f[0]+":") && f[0] != "root" && (name == "group" && f[3] != "" || name == "passwd" && f[4] != "") {
				t.Errorf("%s: %q, want no names of people", name, line)
			}
		}
	}
}
