package podman

import (
	"context"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/backend"
)

func TestDiagnoseStopsAtWhatFails(t *testing.T) {
	dir := home(t)
	for _, c := range []struct {
		name, host, check, fix string
	}{
		{"configuration", "nowhere", "configuration", "correct what the message names"},
		{"socket", "unix://" + filepath.Join(dir, "none.sock"), "socket", "podman system service"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.check == "socket" && runtime.GOOS != "linux" {
				t.Skip("the advice is Linux's")
			}
			all := Diagnose(context.Background(), &ClientOptions{Host: c.host})
			last := all[len(all)-1]
			if last.Check != c.check || last.Level != backend.LevelFailure || !strings.Contains(last.Fix, c.fix) {
				t.Errorf("got %+v, want Check = %v, Level = LevelFailure, Fix containing %q", all, c.check, c.fix)
			}
		})
	}
}
