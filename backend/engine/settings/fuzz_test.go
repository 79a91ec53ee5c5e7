package settings

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"

	"github.com/llmsandbox/llmsandbox/backend"
)

// Whatever the text: settings that are valid and keep the defaults they do not say they
// loosen, or an error that names the key and leaves the settings as they were.
func FuzzSet(f *testing.F) {
	for _, k := range Keys() {
		f.Add(k.Name, k.Example)
	}
	for _, c := range shapes {
		for _, text := range c.texts {
			f.Add(c.key, text)
		}
	}
	f.Fuzz(func(t *testing.T, key, value string) {
		var s Settings
		if err := s.Set(key, value); err != nil {
			var wrong *KeyError
			if !errors.As(err, &wrong) || wrong.Key != key || !errors.Is(err, backend.ErrInvalid) {
				t.Errorf("%q is no KeyError of %q, want an error of type %T, Key = %v, backend.ErrInvalid", err, key, wrong, key)
			}
			if len(err.Error()) > 4000 || strings.ContainsFunc(printable(key), func(r rune) bool { return r < ' ' }) {
				t.Errorf("error of %d bytes: %q, want at most 4000 and no control characters", len(err.Error()), err)
			}
			return
		}
		holds(t, s)
	})
}

func FuzzFromMap(f *testing.F) {
	for _, c := range shapes {
		for _, text := range c.json {
			f.Add(`{"` + c.key + `":` + text + `}`)
		}
	}
	f.Add(`{"network":"lab","ports":{"80/tcp":["192.0.2.9",8080],"81/udp":null,"82":[1,2]}}`)
	f.Add(`{"cap_add":["ALL"],"cap_drop":["KILL"],"privileged":true}`)
	f.Fuzz(func(t *testing.T, text string) {
		var m map[string]any
		if json.Unmarshal([]byte(text), &m) != nil {
			return
		}
		s, err := FromMap(m)
		if err != nil {
			if !errors.Is(err, backend.ErrInvalid) {
				t.Errorf("%v is not an ErrInvalid, want backend.ErrInvalid", err)
			}
			return
		}
		if err := s.Validate(); err != nil {
			t.Errorf("what FromMap returned is not valid: %v", err)
		}
		holds(t, s)
	})
}

// holds checks that a control which Loosened does not name is as in the defaults.
func holds(t *testing.T, s Settings) {
	loose := map[string]bool{}
	for _, l := range s.Loosened() {
		if loose[l.Control] || l.What == "" {
			t.Errorf("control %s is there twice, or without a word, want loose[l.Control] = false, What not empty", l.Control)
		}
		loose[l.Control] = true
	}
	cfg, host := defaults()
	if s.Apply(cfg, host) != nil {
		return
	}
	own := host.Mounts[0]
	if own.Target != "/.llmsandbox" || !own.ReadOnly || !host.AutoRemove || host.RestartPolicy.Name != "" || cfg.Labels["llmsandbox.id"] != "a" {
		t.Error("what the sandbox keeps for itself is changed")
	}
	for _, line := range cfg.Env {
		if strings.HasPrefix(line, "LLMSANDBOX_") {
			t.Errorf("environment: %s, want it not to begin with \"LLMSANDBOX_\"", line)
		}
	}
	user, group, _ := strings.Cut(cfg.User, ":")
	seccomp := slices.IndexFunc(host.SecurityOpt, func(o string) bool { return strings.HasPrefix(o, "seccomp") && o != "seccomp=builtin" })
	for control, kept := range map[string]bool{
		"isolation":    !host.Privileged,
		"capabilities": !host.Privileged && len(host.CapAdd) == 0 && has(host.CapDrop, "ALL"),
		"no-new-privs": slices.Contains(host.SecurityOpt, "no-new-privileges"),
		"seccomp":      seccomp < 0,
		"masked-paths": host.MaskedPaths == nil && host.ReadonlyPaths == nil,
		"network":      host.NetworkMode == "none" && len(host.PortBindings) == 0 && !host.PublishAllPorts,
		"filesystem":   host.ReadonlyRootfs && len(host.Binds) == 0 && len(host.VolumesFrom) == 0 && !slices.ContainsFunc(host.Mounts[1:], func(m mount.Mount) bool { return m.Source != "" }),
		"user":         user != "root" && strings.Trim(user, "0") != "" && (group == "" || group != "root" && strings.Trim(group, "0") != "") && len(host.GroupAdd) == 0,
		"memory":       host.Memory >= minMemory && host.MemorySwap >= host.Memory && (host.OomKillDisable == nil || !*host.OomKillDisable) && host.OomScoreAdj >= 0,
		"cpus":         host.NanoCPUs > 0 || host.CPUQuota > 0 && host.CPUPeriod > 0,
		"pids":         *host.PidsLimit > 0,
		"processes":    host.PidMode == "",
		"ipc":          host.IpcMode == container.IPCModePrivate || host.IpcMode == container.IPCModeNone,
		"uts":          host.UTSMode == "",
		"devices":      len(host.Devices)+len(host.DeviceCgroupRules)+len(host.DeviceRequests) == 0,
		"agent":        host.PidMode == "" && (host.Init == nil || !*host.Init),
		"logs":         host.LogConfig.Type == "none",
		"disk":         host.ReadonlyRootfs && readOnlyOnly(host),
	} {
		if !kept && !loose[control] {
			t.Errorf("control %s is loosened and nothing says so: %+v, want kept = true or loose[control] = true", control, s)
		}
	}
}

// readOnlyOnly tells that nothing can be written to but the defaults' tmpfs.
func readOnlyOnly(host *container.HostConfig) bool {
	for _, bind := range host.Binds {
		if mode := bind[strings.LastIndexByte(bind, ':')+1:]; !slices.Contains(strings.Split(mode, ","), "ro") {
			return false
		}
	}
	_, usual := defaults()
	for target, options := range host.Tmpfs {
		if usual.Tmpfs[target] != options {
			return false
		}
	}
	return !slices.ContainsFunc(host.Mounts, func(m mount.Mount) bool { return !m.ReadOnly })
}
