package settings

import "strings"

func (s *Settings) loosenedSecurity(l *loosenings) {
	if isTrue(s.Privileged) {
		l.add("isolation", "privileged: all capabilities and devices and no confinement, as good as root on the engine's host")
		l.add("capabilities", "privileged: all of them")
	}
	if user, group, _ := strings.Cut(s.User, ":"); s.User != "" {
		switch {
		case root(user):
			l.add("user", "user=%s: code runs as root inside", s.User)
		case root(group):
			l.add("user", "user=%s: code runs with the group of root inside", s.User)
		case strings.Trim(user, "0123456789") != "":
			l.add("user", "user=%s: which user that is, the image decides", s.User)
		}
	}
	if len(s.Groups) > 0 {
		l.add("user", "group_add: code belongs to %s too", strings.Join(s.Groups, ", "))
	}
	if len(s.CapAdd) > 0 {
		l.add("capabilities", "cap_add: %s", strings.Join(s.CapAdd, ", "))
	}
	if isFalse(s.ReadOnlyRoot) {
		l.add("filesystem", "read_only=false: the root file system can be written to")
		if s.StorageOpt["size"] == "" {
			l.add("disk", "read_only=false: what is written to the root file system is not limited")
		}
	}
	s.loosenedSecurityOpt(l)
	for _, d := range s.Devices {
		l.add("devices", "devices: the host's %s", d.PathOnHost)
	}
	for _, rule := range s.DeviceCgroupRules {
		l.add("devices", "device_cgroup_rules: %s", rule)
	}
	if len(s.DeviceRequests) > 0 {
		l.add("devices", "device_requests: devices of the host")
	}
}

// root tells whether a user or group is root's, by number or name.
func root(id string) bool {
	return id == "root" || id != "" && strings.Trim(id, "0") == ""
}

func (s *Settings) loosenedSecurityOpt(l *loosenings) {
	if s.gainsPrivileges() {
		l.add("no-new-privs", "security_opt no-new-privileges=false: programs may gain privileges, such as those of set-uid files")
	}
	for _, opt := range s.SecurityOpt {
		kind, value := cutSecurityOpt(opt)
		switch {
		case kind == "seccomp" && value == "unconfined":
			l.add("seccomp", "security_opt seccomp=unconfined: the engine filters no system calls")
		case kind == "seccomp" && value != "builtin":
			l.add("seccomp", "security_opt seccomp: a profile of the caller in place of the engine's")
		case kind == "apparmor":
			l.add("apparmor", "security_opt apparmor=%s in place of the engine's profile", value)
		case kind == "label":
			l.add("selinux", "security_opt label=%s", value)
		case kind == "systempaths" || kind == "unmask":
			l.add("masked-paths", "security_opt %s=%s: files of the kernel that are hidden otherwise", kind, value)
		}
	}
}
