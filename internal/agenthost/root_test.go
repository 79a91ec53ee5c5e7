package agenthost

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/backend"
)

func TestRootUser(t *testing.T) {
	for u, want := range map[string]bool{"": true, "0": true, "root": true, "0:1000": true, "root:x": true, "1000": false, "app:0": false, "00": true, "+0": true, "o": false} {
		if RootUser(u) != want {
			t.Errorf("%q: %v, want RootUser(u) = %v", u, !want, want)
		}
	}
}

func TestCheckRoot(t *testing.T) {
	for _, c := range []struct {
		spec backend.Spec
		want error
		says string
	}{
		{backend.Spec{}, nil, ""},
		{backend.Spec{User: "root:65535", WritableRoot: true, Workdir: "/srv/project"}, nil, ""},
		{backend.Spec{User: "1000:1000", Sudo: true}, backend.ErrUnsupported, "--user root"},
		{backend.Spec{WritableRoot: true}, backend.ErrUnsupported, "--user root"},
		{backend.Spec{User: "65536"}, backend.ErrInvalid, "below 65536"},
		{backend.Spec{User: "1:65536"}, backend.ErrInvalid, "below 65536"},
		{backend.Spec{Workdir: "/etc/x"}, backend.ErrInvalid, "/etc"},
	} {
		if err := CheckRoot(c.spec); !errors.Is(err, c.want) || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v, want %v and %q", c.spec, err, c.want, c.says)
		}
	}
}

// TestServeUsers: the agent leaves capabilities to code only where that was asked to be root.
func TestServeUsers(t *testing.T) {
	for user, want := range map[string]bool{"": false, "root": true, "0:7": true, "7:0": false} {
		if got := slices.Contains(ServeArgs(backend.Spec{User: user}, Serve{}), "--users"); got != want {
			t.Errorf("user %q: --users is %v, want %v", user, got, want)
		}
	}
}

func TestRefuseRoot(t *testing.T) {
	for _, spec := range []backend.Spec{{WritableRoot: true}, {User: "root"}, {User: "1000:1000", Sudo: true}} {
		if err := Pod.Refuse(spec); !errors.Is(err, backend.ErrInvalid) || !strings.Contains(err.Error(), "an existing pod has its own root file system and user") {
			t.Errorf("%+v: %v, want ErrInvalid and why", spec, err)
		}
	}
}
