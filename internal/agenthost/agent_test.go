package agenthost

import (
	"context"
	"errors"
	"io"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agentbin"
)

func TestBring(t *testing.T) {
	key, err := agentbin.Key("amd64")
	if err != nil {
		t.Fatal(err)
	}
	dir := "/.llmsandbox-" + key
	readOnly, noExec := errors.New("read-only"), errors.New("no exec")
	for _, c := range []struct {
		name        string
		there       string          // a place of an agent that is there already
		noShell     bool            // only copying works
		writable    map[string]bool // by place
		executable  map[string]bool
		want        string // the place
		put         int    // how often it is tried to
		unsupported bool
	}{
		{name: "it is there", there: "/var/tmp", want: "/var/tmp", put: 2},
		{name: "the first place", writable: map[string]bool{"/tmp": true}, executable: map[string]bool{"/tmp": true}, want: "/tmp", put: 1},
		{name: "without a shell", noShell: true, writable: map[string]bool{"/tmp": true}, executable: map[string]bool{"/tmp": true}, want: "/tmp", put: 2},
		{
			name: "one that cannot be run from", writable: map[string]bool{"/tmp": true, "/run": true}, executable: map[string]bool{"/run": true},
			want: "/run", put: 5,
		},
		{name: "none", put: 8, unsupported: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			put, at := 0, []string{c.there + dir + "/agent"}
			place := func(into string) error {
				place := strings.TrimSuffix(into, dir)
				if !c.writable[place] {
					return readOnly
				}
				if c.executable[place] {
					at = append(at, path.Join(into, "agent"))
				}
				return nil
			}
			b := Bringer{Arch: "amd64", Fix: "mend it"}
			b.Run = func(_ context.Context, in io.Reader, argv ...string) error {
				switch {
				case len(argv) == 2 && argv[1] == "version" && slices.Contains(at, argv[0]):
					return nil
				case argv[0] != "/bin/sh":
					return noExec
				case argv[5] == "seccomp":
					put++
				}
				if c.noShell {
					return noExec
				}
				content, err := io.ReadAll(in)
				if err != nil || len(content) == 0 {
					t.Errorf("%d bytes of %s are sent, %v, want no error, content not empty", len(content), argv[5], err)
				}
				return place(argv[4])
			}
			b.Copy = func(_ context.Context, into string) error {
				put++
				return place(into)
			}
			want := ""
			if c.want != "" {
				want = c.want + dir + "/agent"
			}
			got, err := b.Bring(t.Context())
			if got != want || put != c.put || errors.Is(err, backend.ErrUnsupported) != c.unsupported {
				t.Errorf("got %q, %v, tried %d times; want %q, %d times", got, err, put, want, c.put)
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
	tried := 0
	_, err := Bringer{Arch: "amd64", Run: func(_ context.Context, _ io.Reader, argv ...string) error {
		if argv[0] == "/bin/sh" {
			tried++
			cancel()
		}
		return context.Canceled
	}}.Bring(ctx)
	if !errors.Is(err, context.Canceled) || tried != 1 {
		t.Errorf("got %v, tried %d times, want %v, once", err, tried, context.Canceled)
	}
}
