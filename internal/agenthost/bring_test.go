package agenthost

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/backend"
)

func TestBring(t *testing.T) {
	readOnly, noExec := errors.New("read-only"), errors.New("no exec")
	for _, c := range []struct {
		name        string
		there       string          // an agent that is there already
		writable    map[string]bool // by directory
		executable  map[string]bool
		want        string
		put         int
		unsupported bool
	}{
		{name: "it is there", there: "/var/tmp/.llmsandbox-k/agent", want: "/var/tmp/.llmsandbox-k/agent", put: 2},
		{name: "the first place", writable: map[string]bool{"/tmp": true}, executable: map[string]bool{"/tmp": true}, want: "/tmp/.llmsandbox-k/agent", put: 2},
		{
			name: "one that cannot be run from", writable: map[string]bool{"/tmp": true, "/run": true}, executable: map[string]bool{"/run": true},
			want: "/run/.llmsandbox-k/agent", put: 6,
		},
		{name: "none", put: 8, unsupported: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			put, at := 0, []string{c.there}
			b := Bringer{Key: "k", Fix: "mend it", Runs: func(agent string) error {
				if slices.Contains(at, agent) {
					return nil
				}
				return noExec
			}}
			attempt := func(works bool) func(string) error {
				return func(dir string) error {
					put++
					place := strings.TrimSuffix(dir, "/.llmsandbox-k")
					if !works || !c.writable[place] {
						return readOnly
					}
					if c.executable[place] {
						at = append(at, dir+"/agent")
					}
					return nil
				}
			}
			b.Puts = []func(string) error{attempt(false), attempt(true)}
			got, err := b.Bring(t.Context())
			if got != c.want || put != c.put || errors.Is(err, backend.ErrUnsupported) != c.unsupported {
				t.Errorf("%q, %v, tried %d times", got, err, put)
			}
			if c.unsupported && (!errors.Is(err, readOnly) || !strings.Contains(err.Error(), "mend it") || !strings.Contains(err.Error(), "/dev/shm: ")) {
				t.Error(err)
			}
		})
	}
}

// TestBringEnds: no further place is tried when the caller has gone.
func TestBringEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	put := 0
	_, err := Bringer{Key: "k", Runs: func(string) error { return context.Canceled }, Puts: []func(string) error{func(string) error {
		put++
		cancel()
		return ctx.Err()
	}}}.Bring(ctx)
	if !errors.Is(err, context.Canceled) || put != 1 {
		t.Errorf("%v, tried %d times", err, put)
	}
}
