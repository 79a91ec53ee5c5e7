package podman

import (
	"testing"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
)

func TestAdjust(t *testing.T) {
	const closed = "ro,noexec,nosuid,nodev,size=64k,mode=755"
	for _, c := range []struct {
		name   string
		host   container.HostConfig
		run    string // what is at /run
		tmp    string // and at /var/tmp
		tmpDir string // and at /tmp
	}{
		{name: "read-only", host: container.HostConfig{ReadonlyRootfs: true, Tmpfs: map[string]string{"/tmp": "rw"}}, run: closed, tmp: closed, tmpDir: "rw,notmpcopyup"},
		{name: "writable", host: container.HostConfig{Tmpfs: map[string]string{"/tmp": "rw"}}, tmpDir: "rw,notmpcopyup"},
		{name: "asked for", host: container.HostConfig{ReadonlyRootfs: true, Tmpfs: map[string]string{"/run": "rw,size=1m"}}, run: "rw,size=1m,notmpcopyup", tmp: closed},
		{name: "mounted", host: container.HostConfig{ReadonlyRootfs: true, Mounts: []mount.Mount{{Target: "/run"}}, Binds: []string{"v:/var/tmp:ro"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			adjust(nil, &c.host)
			if got := c.host.Tmpfs; got["/run"] != c.run || got["/var/tmp"] != c.tmp || got["/tmp"] != c.tmpDir {
				t.Errorf("got %q, want got[\"/run\"] = %v, got[\"/var/tmp\"] = %v, got[\"/tmp\"] = %v", got, c.run, c.tmp, c.tmpDir)
			}
		})
	}
}
