package podman

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/moby/moby/api/types/system"
	"github.com/moby/moby/client"
)

// info is what Podman reports about itself, as far as it matters here.
type info struct {
	Host struct {
		Arch              string   `json:"arch"`
		CgroupManager     string   `json:"cgroupManager"`
		CgroupVersion     string   `json:"cgroupVersion"` // "v1" or "v2"
		CgroupControllers []string `json:"cgroupControllers"`
		CPUs              int      `json:"cpus"`
		Distribution      struct {
			Distribution string `json:"distribution"`
			Version      string `json:"version"`
		} `json:"distribution"`
		Hostname   string `json:"hostname"`
		Kernel     string `json:"kernel"`
		MemTotal   int64  `json:"memTotal"`
		OCIRuntime struct {
			Name string `json:"name"`
			Path string `json:"path"`
		} `json:"ociRuntime"`
		OS       string `json:"os"`
		Security struct {
			AppArmor bool `json:"apparmorEnabled"`
			Rootless bool `json:"rootless"`
			Seccomp  bool `json:"seccompEnabled"`
			SELinux  bool `json:"selinuxEnabled"`
		} `json:"security"`
		SwapTotal int64 `json:"swapTotal"`
	} `json:"host"`
	Store struct {
		Driver string `json:"graphDriverName"`
		Root   string `json:"graphRoot"`
	} `json:"store"`
	Version struct {
		Version string `json:"Version"`
	} `json:"version"`
}

// docker converts it to Docker's type.
func (i info) docker() system.Info {
	h := i.Host
	version := strings.TrimPrefix(h.CgroupVersion, "v")
	memory := i.holds("memory")
	d := system.Info{
		ServerVersion: i.Version.Version, OSType: h.OS, Architecture: h.Arch, KernelVersion: h.Kernel,
		OperatingSystem: strings.TrimSpace(h.Distribution.Distribution + " " + h.Distribution.Version),
		Name:            h.Hostname, NCPU: h.CPUs, MemTotal: h.MemTotal,
		Driver: i.Store.Driver, DockerRootDir: i.Store.Root,
		CgroupVersion: version, CgroupDriver: h.CgroupManager,
		MemoryLimit: memory,
		// Whether version 1 counts swap is a start parameter of the kernel that Podman
		// does not report. Without swap there is nothing to count.
		SwapLimit:   memory && (version == "2" || h.SwapTotal == 0),
		CPUCfsQuota: i.holds("cpu"), CPUCfsPeriod: i.holds("cpu"), CPUShares: i.holds("cpu"),
		CPUSet: i.holds("cpuset"), PidsLimit: i.holds("pids"),
		DefaultRuntime: h.OCIRuntime.Name,
	}
	if h.OCIRuntime.Name != "" {
		d.Runtimes = map[string]system.RuntimeWithStatus{h.OCIRuntime.Name: {Runtime: system.Runtime{Path: h.OCIRuntime.Path}}}
	}
	for _, o := range []struct {
		name string
		on   bool
	}{
		{"seccomp,profile=default", h.Security.Seccomp}, {"rootless", h.Security.Rootless},
		{"apparmor", h.Security.AppArmor}, {"selinux", h.Security.SELinux},
	} {
		if o.on {
			d.SecurityOptions = append(d.SecurityOptions, "name="+o.name)
		}
	}
	return d
}

// holds reports whether containers are held to what that cgroup controller limits.
func (i info) holds(controller string) bool {
	h := i.Host
	if h.Security.Rootless && (h.CgroupVersion != "v2" || h.CgroupManager != "systemd") {
		// An ordinary user has no cgroup of version 1 to write to, and one of version 2
		// only from systemd. Podman then starts containers without limits.
		return false
	}
	return slices.Contains(h.CgroupControllers, controller)
}

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
