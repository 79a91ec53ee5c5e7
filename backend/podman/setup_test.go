package podman

import (
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/backend"
)

func TestIDs(t *testing.T) {
	alice := &user.User{Username: "alice", Uid: "1007"}
	for _, c := range []struct {
		name, content, detail string
		level                 backend.Level
	}{
		{"by name", "bob:1:65536\nalice:100000:65536\n", "65536 ids for alice", backend.LevelOK},
		{"by uid, in parts", "1007:100000:60000\n1007:200000:5536\n", "65536 ids for alice", backend.LevelOK},
		{"too few", "alice:100000:1000\n", "1000 ids for alice, Podman needs 65536", backend.LevelFailure},
		{"none", "alice:100000\nalice:1:-70000\nalic:1:65536\n", "0 ids for alice", backend.LevelFailure},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "subuid")
			put(t, file, c.content)
			f := ids(file, alice)
			if f.Level != c.level || !strings.HasPrefix(f.Detail, c.detail) || (f.Fix == "") != (c.level == backend.LevelOK) {
				t.Errorf("got %+v, want Level = %v, Detail beginning with %q, f.Fix == \"\" = %v", f, c.level, c.detail, c.level == backend.LevelOK)
			}
		})
	}
	if f := ids(filepath.Join(t.TempDir(), "none"), alice); f.Level != backend.LevelFailure || !strings.Contains(f.Fix, "usermod") {
		t.Errorf("without a file: %+v, want Level = LevelFailure, Fix containing \"usermod\"", f)
	}
}

func TestRootSetup(t *testing.T) {
	proc := t.TempDir()
	for name, content := range map[string]string{
		"self/limits":        "Limit                     Soft Limit           Hard Limit           Units\nMax processes             96365                96365                processes\nMax open files            1024                 20000                files\n",
		"sys/kernel/pid_max": "32768\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(proc, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(proc, name), content)
	}
	const want = `set default_ulimits = ["nofile=20000:20000", "nproc=32768:32768"] in the [containers] table of containers.conf`
	for capabilities, found := range map[string]bool{"000001fffeffffff": true, "000001ffffffffff": false, "?": false} {
		put(t, filepath.Join(proc, "self/status"), "Name:\tx\nCapEff:\t"+capabilities+"\nCapBnd:\t0\n")
		all := rootSetup(proc)
		if (len(all) == 1) != found || found && (all[0].Level != backend.LevelWarning || all[0].Fix != want) {
			t.Errorf("%s: %+v, want a warning: %v, with %s", capabilities, all, found, want)
		}
	}
	if got := limitsFix(filepath.Join(proc, "none")); !strings.Contains(got, `"nproc=M:M"`) {
		t.Errorf("without /proc: %s, want \"nproc=M:M\"", got)
	}
}
