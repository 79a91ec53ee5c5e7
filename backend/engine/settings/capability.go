package settings

import (
	"fmt"
	"slices"
	"strings"

	"github.com/moby/moby/api/types/container"
)

const allCapabilities = "ALL"

var capabilityNames = strings.Fields(`AUDIT_CONTROL AUDIT_READ AUDIT_WRITE BLOCK_SUSPEND BPF CHECKPOINT_RESTORE CHOWN
	DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID IPC_LOCK IPC_OWNER KILL LEASE LINUX_IMMUTABLE MAC_ADMIN MAC_OVERRIDE
	MKNOD NET_ADMIN NET_BIND_SERVICE NET_BROADCAST NET_RAW PERFMON SETFCAP SETGID SETPCAP SETUID SYSLOG SYS_ADMIN
	SYS_BOOT SYS_CHROOT SYS_MODULE SYS_NICE SYS_PACCT SYS_PTRACE SYS_RAWIO SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG
	WAKE_ALARM`)

// capability is the name as the kernel's documentation has it, without CAP_.
func capability(name string) string {
	return strings.TrimPrefix(strings.ToUpper(name), "CAP_")
}

func toCapability(v any) (string, error) {
	name, err := toText(v)
	return capability(name), err
}

func validCapability(name string) error {
	if c := capability(name); c != allCapabilities && !slices.Contains(capabilityNames, c) {
		hint := ""
		if like := closest(c, capabilityNames); like != "" {
			hint = fmt.Sprintf(" (did you mean %s?)", like)
		}
		return fmt.Errorf("%q is no capability%s: use a name such as NET_ADMIN, or ALL", shorten(name), hint)
	}
	return nil
}

// has tells whether a list of capabilities names one.
func has(list []string, name string) bool {
	return slices.ContainsFunc(list, func(c string) bool { return capability(c) == name })
}

// applyCapabilities keeps the default of dropping all, except where everything was
// asked for: engines let a drop of all win over an addition of all.
func (s *Settings) applyCapabilities(host *container.HostConfig) {
	if has(s.CapAdd, allCapabilities) || isTrue(s.Privileged) {
		host.CapDrop = nil
	}
	for _, c := range s.CapAdd {
		host.CapAdd = addCapability(host.CapAdd, capability(c))
	}
	for _, c := range s.CapDrop {
		host.CapDrop = addCapability(host.CapDrop, capability(c))
	}
}

func addCapability(list []string, name string) []string {
	if has(list, name) {
		return list
	}
	return append(slices.Clip(list), name)
}

func isTrue(b *bool) bool  { return b != nil && *b }
func isFalse(b *bool) bool { return b != nil && !*b }
