package settings

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/moby/moby/api/types/container"
)

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
	switch kind {
	case noNewPrivileges:
		if value == "" || value == "true" || value == "false" {
			return nil
		}
		return errors.New("use no-new-privileges=true or no-new-privileges=false")
	case "seccomp":
		if strings.HasPrefix(value, "{") && !json.Valid([]byte(value)) {
			return errors.New("the seccomp profile is not valid JSON")
		}
		if len(value) > maxValue {
			return errors.New("the seccomp profile is longer than 1 MiB")
		}
	case "systempaths":
		if value != "unconfined" {
			return errors.New("use systempaths=unconfined")
		}
	case "apparmor", "label", "mask", "unmask":
	default:
		return errors.New(useSecurityOpt)
	}
	if value == "" || noControls(value) != nil && !strings.HasPrefix(value, "{") {
		return errors.New(useSecurityOpt)
	}
	return nil
}

// gainsPrivileges tells that no-new-privileges=false was asked for last.
func (s *Settings) gainsPrivileges() bool {
	gains := false
	for _, opt := range s.SecurityOpt {
		if kind, value := cutSecurityOpt(opt); kind == noNewPrivileges {
			gains = value == "false"
		}
	}
	return gains
}

// applySecurityOpt adds to the defaults; of the kinds that there can be only one of,
// the last takes the place of those before.
func (s *Settings) applySecurityOpt(host *container.HostConfig) error {
	for _, opt := range s.SecurityOpt {
		kind, value := cutSecurityOpt(opt)
		opt = kind + "=" + value
		switch kind {
		case noNewPrivileges:
			opt = ""
			if value != "false" {
				opt = noNewPrivileges
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
	if err != nil {
		return "", fmt.Errorf("runtime option security_opt: seccomp profile: %w: give an existing file, the profile's JSON, or unconfined", err)
	}
	if !info.Mode().IsRegular() || info.Size() > maxValue {
		return "", fault("security_opt", "seccomp profile %s: use a regular file of at most 1 MiB", value)
	}
	f, err := os.Open(value)
	if err != nil {
		return "", fmt.Errorf("runtime option security_opt: seccomp profile: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxValue))
	if err != nil {
		return "", fmt.Errorf("runtime option security_opt: seccomp profile: %w", err)
	}
	if !json.Valid(text) {
		return "", fault("security_opt", "seccomp profile %s is not valid JSON", value)
	}
	return string(text), nil
}
