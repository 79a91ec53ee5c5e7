package settings

import "fmt"

// Validate finds values that are not allowed and settings that contradict each other.
// FromMap and Apply do it themselves.
func (s *Settings) Validate() error {
	for i := range options {
		o := &options[i]
		value, err := o.check(s)
		if err == nil {
			continue
		}
		shown := ""
		if !o.secret {
			shown = shorten(fmt.Sprint(value))
		}
		return &KeyError{Key: o.Name, Value: shown, Reason: err.Error()}
	}
	for _, conflict := range []func() error{s.cpuConflict, s.networkConflict, s.securityConflict, s.filesConflict} {
		if err := conflict(); err != nil {
			return err
		}
	}
	return nil
}

func (s *Settings) cpuConflict() error {
	if s.NanoCPUs != nil && (s.CPUQuota != nil || s.CPUPeriod != nil) {
		return fault("nano_cpus", "contradicts cpu_quota and cpu_period: they are two ways to limit CPUs; use one")
	}
	return nil
}

func (s *Settings) networkConflict() error {
	if len(s.Ports) > 0 || isTrue(s.PublishAllPorts) {
		key := "ports"
		if len(s.Ports) == 0 {
			key = "publish_all_ports"
		}
		switch {
		case s.Network == "" || s.Network == "none":
			return fault(key, "a sandbox without a network has no ports to publish: name one, such as network_mode=bridge")
		case shared(s.Network):
			return fault(key, "contradicts network_mode=%s: its ports are published already", s.Network)
		}
	}
	if s.Hostname != "" && (s.UTSMode == "host" || shared(s.Network) && s.Network != "host") {
		return fault("hostname", "contradicts uts_mode=host and network_mode=container:...: the host name is then another one's")
	}
	return nil
}

func (s *Settings) securityConflict() error {
	if has(s.CapAdd, allCapabilities) && has(s.CapDrop, allCapabilities) {
		return fault("cap_add", "contradicts cap_drop=ALL: name the capabilities to add")
	}
	if isTrue(s.OOMKillDisable) && s.Memory != nil && *s.Memory == 0 {
		return fault("oom_kill_disable", "needs a memory limit: without one the host itself runs out of memory")
	}
	return nil
}

func (s *Settings) filesConflict() error {
	taken := map[string]string{}
	for _, p := range s.targets() {
		if other, twice := taken[p.path]; twice {
			return fault(p.key, "target %s is mounted upon twice, by %s too: choose another target", p.path, other)
		}
		taken[p.path] = p.key
	}
	if s.VolumeDriver == "" {
		return nil
	}
	for _, v := range s.Volumes {
		if v.Source != "" && !hostPath(v.Source) {
			return nil
		}
	}
	return fault("volume_driver", "there is no named volume in volumes that it could be for")
}
