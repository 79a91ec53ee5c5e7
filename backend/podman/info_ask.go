package podman

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/moby/moby/api/types/system"
	"github.com/moby/moby/client"
)

// maxInfo bounds what Podman reports about itself, in bytes.
const maxInfo = 1 << 20

// askInfo asks Podman what it is and can. It uses Podman's own API: in Docker's, the
// Podman of an ordinary user says that it can limit what it cannot.
func askInfo(ctx context.Context, c *client.Client) (system.Info, error) {
	dial := c.Dialer()
	transport := &http.Transport{
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
		DisableKeepAlives: true,
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+client.DummyHost+root(c)+"/v4.0.0/libpod/info", nil)
	if err != nil {
		return system.Info{}, fmt.Errorf("ask Podman what it can: %w", err)
	}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return system.Info{}, fmt.Errorf("ask Podman what it can: %w", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxInfo))
	if err != nil {
		return system.Info{}, fmt.Errorf("ask Podman what it can: %w", err)
	}
	if resp.StatusCode == http.StatusNotFound {
		return system.Info{}, fmt.Errorf("what listens at %s is not Podman, version 4 or later: name another with CONTAINER_HOST, or use the backend docker", c.DaemonHost())
	}
	if resp.StatusCode != http.StatusOK {
		return system.Info{}, fmt.Errorf("ask Podman what it can: it answers %s: %.200q", resp.Status, body)
	}
	var i info
	if err := json.Unmarshal(body, &i); err != nil {
		return system.Info{}, fmt.Errorf("what Podman reports about itself is not understood: %w", err)
	}
	return i.docker(), nil
}

// root is the path in a tcp:// host, which comes before every path of the API.
func root(c *client.Client) string {
	u, err := url.Parse(c.DaemonHost())
	if err != nil || u.Scheme != "tcp" {
		return ""
	}
	return strings.TrimSuffix(u.Path, "/")
}
