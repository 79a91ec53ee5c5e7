//go:build linux

package engine

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/moby/moby/api/types/container"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend/engine"
	"github.com/llmsandbox/llmsandbox/internal/testengine"
	"github.com/llmsandbox/llmsandbox/internal/testfaults"
	"github.com/llmsandbox/llmsandbox/internal/testimage"
)

// TestNetworkOfExisting gives a sandbox in an existing container a network, and leaves
// the container as it was.
func TestNetworkOfExisting(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") }))
	defer server.Close()
	network := llmsandbox.Network{Mode: llmsandbox.NetworkAllow, Allow: []string{strings.TrimPrefix(server.URL, "http://")}}
	path := testimage.Save(t, faultsImage, testimage.Busybox(t, nil))
	onEachEngine(t, func(t *testing.T, e *testengine.Engine) {
		leakFree(t)
		e.Load(t, path)
		c := newClient(t, e)
		ctx := testfaults.Context(t)
		id := foreignContainer(t, c, container.Config{Image: faultsImage, Cmd: strings.Fields(own)}, container.HostConfig{}, false)
		b := newBackend(t, e, engine.Options{Container: id})
		sb, err := llmsandbox.Open(ctx, &llmsandbox.Options{Backend: b, Network: network})
		if err != nil {
			t.Fatal(err)
		}
		defer sb.Close()
		res, err := sb.Shell(ctx, `cat "${NODE_OPTIONS#--require=}" >/dev/null && wget -q -O- `+server.URL, nil)
		if err != nil || res.Stdout != "hello\n" {
			t.Errorf("%v, %s %s%s, want no error, Stdout = \"hello\\n\"", err, res.Status, res.Stdout, res.Stderr)
		}
		if err := sb.Close(); err != nil {
			t.Error(err)
		}
		testfaults.AwaitDone(t, sb)
		wantAsItWas(t, c, id)
	})
}
