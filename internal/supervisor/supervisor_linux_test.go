package supervisor

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox/internal/gateway"
)

var errWrong = errors.New("wrong")

// fakeOwner is an owner without a sandbox.
type fakeOwner struct{ network Network }

func (o *fakeOwner) Network() Network { return o.network }
func (o *fakeOwner) SetNetwork(_ context.Context, mode string, allow []string) error {
	if mode == "wrong" {
		return errWrong
	}
	o.network.Mode, o.network.Allow = mode, allow
	return nil
}
func (o *fakeOwner) Record() *gateway.Record     { return nil }
func (o *fakeOwner) Reset(context.Context) error { return errWrong }
func (o *fakeOwner) Kind(err error) string {
	if errors.Is(err, errWrong) {
		return "wrong"
	}
	return ""
}

func serve(t *testing.T, o Owner) *Client {
	t.Helper()
	// Longer than an address of a socket.
	t.Setenv("LLMSANDBOX_STATE_DIR", filepath.Join(t.TempDir(), strings.Repeat("long", 40)))
	s, err := Serve("fake", "a", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	c, err := Find(t.Context(), "fake", "a")
	if c == nil || err != nil {
		t.Fatalf("find the supervisor: %v, %v, want c not nil, no error", c, err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestNetwork(t *testing.T) {
	c := serve(t, &fakeOwner{Network{Mode: "none", Env: []string{"A=b"}}})
	ctx := t.Context()
	if err := c.SetNetwork(ctx, Network{Mode: "allow", Allow: []string{"x"}}); err != nil {
		t.Fatal(err)
	}
	n, err := c.Network(ctx)
	if want := (Network{Mode: "allow", Allow: []string{"x"}, Env: []string{"A=b"}}); err != nil || !reflect.DeepEqual(n, want) {
		t.Errorf("network %+v, %v; want %+v", n, err, want)
	}
	for name, err := range map[string]error{"network": c.SetNetwork(ctx, Network{Mode: "wrong"}), "reset": c.Reset(ctx)} {
		var told *Error
		if !errors.As(err, &told) || *told != (Error{"wrong", "wrong"}) {
			t.Errorf("%s: %v, want the owner's error and its kind", name, err)
		}
	}
	err = c.SetNetwork(ctx, Network{Mode: strings.Repeat("x", maxBody)})
	if err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("a request over the limit: %v, want an error", err)
	}
}

// TestRecordWithoutNetwork: where there is no network, a record is empty and no failure.
func TestRecordWithoutNetwork(t *testing.T) {
	c := serve(t, &fakeOwner{})
	r, err := c.Record(t.Context(), func(err error) { t.Errorf("the record ends with %v, want no call without a network", err) })
	if err != nil {
		t.Fatal(err)
	}
	if a, dropped := r.End(time.Millisecond); len(a) != 0 || dropped != 0 {
		t.Errorf("%v and %d dropped, want none", a, dropped)
	}
}

// TestKilled: the socket that a killed supervisor leaves is no supervisor, and is removed.
func TestKilled(t *testing.T) {
	c := serve(t, &fakeOwner{})
	d, err := dir()
	if err != nil {
		t.Fatal(err)
	}
	parent, err := os.Open(d)
	if err != nil {
		t.Fatal(err)
	}
	defer parent.Close()
	l, err := net.Listen("unix", address(parent, socket(d, "fake", "b")))
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"b", "c"} {
		if c, err := Find(t.Context(), "fake", id); c != nil || err != nil {
			t.Errorf("find the supervisor of %s: %v, %v; want none", id, c, err)
		}
	}
	removed, err := GC()
	if want := []string{socket(d, "fake", "b")}; err != nil || !reflect.DeepEqual(removed, want) {
		t.Errorf("removed %v, %v; want %v", removed, err, want)
	}
	if _, err := c.Network(t.Context()); err != nil {
		t.Errorf("the supervisor that lives: %v", err)
	}
}

func TestDirectoryOfOthers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a directory away")
	}
	state := t.TempDir()
	t.Setenv("LLMSANDBOX_STATE_DIR", state)
	if err := os.Mkdir(filepath.Join(state, "supervisors"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(filepath.Join(state, "supervisors"), 65534, 65534); err != nil {
		t.Fatal(err)
	}
	if s, err := Serve("fake", "a", &fakeOwner{}); err == nil {
		_ = s.Close()
		t.Error("the directory of another user is used, want an error")
	}
	if err := os.WriteFile(filepath.Join(state, "supervisors", "fake-a.sock"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if c, err := Find(t.Context(), "fake", "a"); c != nil || err == nil {
		t.Errorf("a socket of another user: %v, %v; want an error", c, err)
	}
}
