package podman

import (
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
