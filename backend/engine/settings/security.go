package settings

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
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

// has reports whether a list of capabilities names one.
func has(list []string, name string) bool {
	return slices.ContainsFunc(list, func(c string) bool { return capability(c) == name })
}

// withCapabilities adds to a list what is not in it.
func withCapabilities(list, add []string) []string {
	for _, c := range add {
		if c = capability(c); !has(list, c) {
			list = append(slices.Clip(list), c)
		}
	}
	return list
}

// noNewPrivileges is the default that only its own name lifts.
const noNewPrivileges = "no-new-privileges"

const useSecurityOpt = "use no-new-privileges=true or false, seccomp=FILE, JSON or unconfined, apparmor=PROFILE, label=..., systempaths=unconfined, mask=PATHS or unmask=PATHS"

// cutSecurityOpt cuts KIND=VALUE, or KIND:VALUE as it was written once.
func cutSecurityOpt(opt string) (kind, value string) {
	i := strings.IndexAny(opt, "=:")
	if i < 0 {
		return opt, ""
	}
	return opt[:i], opt[i+1:]
}

func validSecurityOpt(opt string) error {
	kind, value := cutSecurityOpt(opt)
	isJSON := strings.HasPrefix(value, "{")
	switch {
	case kind == noNewPrivileges:
		if value != "" && value != "true" && value != "false" {
			return errors.New("use no-new-privileges=true or no-new-privileges=false")
		}
		return nil
	case kind == "seccomp" && isJSON && !json.Valid([]byte(value)):
		return errors.New("the seccomp profile is not valid JSON")
	case kind == "seccomp" && len(value) > maxValue:
		return errors.New("the seccomp profile is longer than 1 MiB")
	case kind == "systempaths" && value != "unconfined":
		return errors.New("use systempaths=unconfined")
	case !slices.Contains([]string{"seccomp", "systempaths", "apparmor", "label", "mask", "unmask"}, kind), value == "", noControls(value) != nil && !isJSON:
		return errors.New(useSecurityOpt)
	}
	return nil
}

// gainsPrivileges reports whether no-new-privileges=false was asked for last.
func (s *Settings) gainsPrivileges() bool {
	gains := false
	for _, opt := range s.SecurityOpt {
		if kind, value := cutSecurityOpt(opt); kind == noNewPrivileges {
			gains = value == "false"
		}
	}
	return gains
}

const (
	useDevice        = "HOST[:INSIDE[:PERMISSIONS]], such as /dev/fuse:/dev/fuse:rwm, or an object with PathOnHost, PathInContainer and CgroupPermissions"
	useDeviceRequest = "all, a number, count=N, device=ID, driver=NAME and capability=NAME with commas between, or an object with Driver, Count, DeviceIDs, Capabilities and Options"
)

func parseDevice(text string) (container.DeviceMapping, error) {
	parts := strings.Split(text, ":")
	if len(parts) > 3 {
		return container.DeviceMapping{}, errors.New("use " + useDevice)
	}
	parts = append(parts, "", "")
	return container.DeviceMapping{PathOnHost: parts[0], PathInContainer: parts[1], CgroupPermissions: parts[2]}, nil
}

func validDevice(d container.DeviceMapping) error {
	if strings.Trim(d.CgroupPermissions, "rwm") != "" || len(d.CgroupPermissions) > 3 {
		return errors.New("permissions: use letters of rwm (read, write, make nodes)")
	}
	return cmp.Or(absolute(d.PathOnHost), absolute(cmp.Or(d.PathInContainer, d.PathOnHost)))
}

// toDeviceRequest decodes an object, or a text in the manner of the docker command's
// --gpus, where a device or capability may be named several times without quotes. What
// names no capability is for GPUs.
func toDeviceRequest(v any) (r container.DeviceRequest, err error) {
	text, err := toText(v)
	if err != nil {
		r, err = toObject[container.DeviceRequest](v, useDeviceRequest)
	} else {
		var capabilities []string
		for field := range strings.SplitSeq(text, ",") {
			name, value, found := strings.Cut(field, "=")
			switch {
			case !found && name == "all", name == "count" && value == "all":
				r.Count = -1
			case !found, name == "count":
				if r.Count, err = toSmall[int](cmp.Or(value, name)); err != nil {
					return r, errors.New("use " + useDeviceRequest)
				}
			case name == "device":
				r.DeviceIDs = append(r.DeviceIDs, value)
			case name == "driver":
				r.Driver = value
			case name == "capability":
				capabilities = append(capabilities, value)
			default:
				return r, errors.New("use " + useDeviceRequest)
			}
		}
		if capabilities != nil {
			r.Capabilities = [][]string{capabilities}
		}
	}
	if len(r.Capabilities) == 0 {
		r.Capabilities = [][]string{{"gpu"}}
	}
	return r, err
}

func validDeviceRequest(r container.DeviceRequest) error {
	if r.Count < -1 || (r.Count == 0) == (len(r.DeviceIDs) == 0) {
		return errors.New("give either a count (-1 for all) or device ids")
	}
	return nil
}

func (s *Settings) securityConflict() error {
	if has(s.CapAdd, allCapabilities) && has(s.CapDrop, allCapabilities) {
		return fault("cap_add", "contradicts cap_drop=ALL: name the capabilities to add")
	}
	return nil
}

func (s *Settings) applySecurity(cfg *container.Config, host *container.HostConfig) error {
	cfg.User = cmp.Or(s.User, cfg.User)
	host.GroupAdd = append(host.GroupAdd, s.Groups...)
	setIf(&host.Privileged, s.Privileged)
	setIf(&host.ReadonlyRootfs, s.ReadOnlyRoot)
	// The default of dropping all is kept, except where everything was asked for:
	// engines let a drop of all win over an addition of all.
	if has(s.CapAdd, allCapabilities) || is(s.Privileged, true) {
		host.CapDrop = nil
	}
	host.CapAdd = withCapabilities(host.CapAdd, s.CapAdd)
	host.CapDrop = withCapabilities(host.CapDrop, s.CapDrop)
	host.UsernsMode = cmp.Or(container.UsernsMode(s.UsernsMode), host.UsernsMode)
	host.IpcMode = cmp.Or(container.IpcMode(s.IpcMode), host.IpcMode)
	host.PidMode = cmp.Or(container.PidMode(s.PidMode), host.PidMode)
	host.UTSMode = cmp.Or(container.UTSMode(s.UTSMode), host.UTSMode)
	host.CgroupnsMode = cmp.Or(container.CgroupnsMode(s.CgroupnsMode), host.CgroupnsMode)
	host.CgroupParent = cmp.Or(s.CgroupParent, host.CgroupParent)
	host.Sysctls = merged(host.Sysctls, s.Sysctls)
	// What a device's mapping leaves out is as engines' command lines fill it in.
	for _, d := range s.Devices {
		d.PathInContainer, d.CgroupPermissions = cmp.Or(d.PathInContainer, d.PathOnHost), cmp.Or(d.CgroupPermissions, "rwm")
		host.Devices = append(host.Devices, d)
	}
	host.DeviceCgroupRules = append(host.DeviceCgroupRules, s.DeviceCgroupRules...)
	host.DeviceRequests = append(host.DeviceRequests, s.DeviceRequests...)
	return s.applySecurityOpt(host)
}

// applySecurityOpt adds to the defaults; of the kinds that there can be only one of,
// the last takes the place of those before.
func (s *Settings) applySecurityOpt(host *container.HostConfig) error {
	for _, opt := range s.SecurityOpt {
		kind, value := cutSecurityOpt(opt)
		opt = kind + "=" + value
		switch kind {
		case noNewPrivileges:
			opt = noNewPrivileges
			if value == "false" {
				opt = ""
			}
		case "systempaths":
			// What engines' command lines make of it: there is no such option in the API.
			host.MaskedPaths, host.ReadonlyPaths = []string{}, []string{}
			continue
		case "seccomp":
			profile, err := seccompProfile(value)
			if err != nil {
				return err
			}
			opt = "seccomp=" + profile
		}
		if kind != "label" && kind != "mask" && kind != "unmask" {
			host.SecurityOpt = slices.DeleteFunc(slices.Clone(host.SecurityOpt), func(other string) bool {
				k, _ := cutSecurityOpt(other)
				return k == kind
			})
		}
		if opt != "" {
			host.SecurityOpt = append(host.SecurityOpt, opt)
		}
	}
	return nil
}

// seccompProfile returns what the engine's API takes: the profile itself, not the
// name of a file of the caller.
func seccompProfile(value string) (string, error) {
	if value == "unconfined" || value == "builtin" || strings.HasPrefix(value, "{") {
		return value, nil
	}
	info, err := os.Stat(value)
	if err == nil && (!info.Mode().IsRegular() || info.Size() > maxValue) {
		return "", fault("security_opt", "seccomp profile %s: use a regular file of at most 1 MiB", value)
	}
	var text []byte
	if err == nil {
		text, err = os.ReadFile(value)
	}
	if err != nil {
		return "", fmt.Errorf("runtime option security_opt: seccomp profile: %w: give an existing file, the profile's JSON, or unconfined", err)
	}
	if !json.Valid(text) {
		return "", fault("security_opt", "seccomp profile %s is not valid JSON", value)
	}
	return string(text), nil
}
