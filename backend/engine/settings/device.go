package settings

import (
	"errors"
	"strings"

	"github.com/moby/moby/api/types/container"
)

const (
	useDevice        = "HOST[:INSIDE[:PERMISSIONS]], such as /dev/fuse:/dev/fuse:rwm, or an object with PathOnHost, PathInContainer and CgroupPermissions"
	useDeviceRequest = "all, a number, count=N, device=ID, driver=NAME and capability=NAME with commas between, or an object with Driver, Count, DeviceIDs, Capabilities and Options"
)

func devicesField(s *Settings) *[]container.DeviceMapping { return &s.Devices }

func deviceRequestsField(s *Settings) *[]container.DeviceRequest { return &s.DeviceRequests }

func toDevice(v any) (container.DeviceMapping, error) {
	if m, ok := v.(map[string]any); ok {
		return toObject[container.DeviceMapping](m, useDevice)
	}
	text, err := toText(v)
	parts := strings.Split(text, ":")
	if err != nil || len(parts) > 3 {
		return container.DeviceMapping{}, errors.New("use " + useDevice)
	}
	parts = append(parts, "", "")
	return container.DeviceMapping{PathOnHost: parts[0], PathInContainer: parts[1], CgroupPermissions: parts[2]}, nil
}

func validDevice(d container.DeviceMapping) error {
	if err := absolute(d.PathOnHost); err != nil {
		return err
	}
	if d.PathInContainer != "" {
		if err := absolute(d.PathInContainer); err != nil {
			return err
		}
	}
	if strings.Trim(d.CgroupPermissions, "rwm") != "" || len(d.CgroupPermissions) > 3 {
		return errors.New("permissions: use letters of rwm (read, write, make nodes)")
	}
	return nil
}

// toDeviceRequest decodes an object, or text as the command line's --gpus takes it.
func toDeviceRequest(v any) (container.DeviceRequest, error) {
	var r container.DeviceRequest
	if m, ok := v.(map[string]any); ok {
		r, err := toObject[container.DeviceRequest](m, useDeviceRequest)
		return withGPU(r), err
	}
	text, err := toText(v)
	if err != nil {
		return r, errors.New("use " + useDeviceRequest)
	}
	var capabilities []string
	for field := range strings.SplitSeq(text, ",") {
		name, value, found := strings.Cut(field, "=")
		if !found {
			name, value = "count", field
		}
		switch name {
		case "count":
			if value == "all" {
				value = "-1"
			}
			if r.Count, err = toSmall[int](value); err != nil {
				return r, errors.New("use " + useDeviceRequest)
			}
		case "device":
			r.DeviceIDs = append(r.DeviceIDs, value)
		case "driver":
			r.Driver = value
		case "capability":
			capabilities = append(capabilities, value)
		default:
			return r, errors.New("use " + useDeviceRequest)
		}
	}
	if capabilities != nil {
		r.Capabilities = [][]string{capabilities}
	}
	return withGPU(r), nil
}

// withGPU makes a request that names no capability one for GPUs.
func withGPU(r container.DeviceRequest) container.DeviceRequest {
	if len(r.Capabilities) == 0 {
		r.Capabilities = [][]string{{"gpu"}}
	}
	return r
}

func validDeviceRequest(r container.DeviceRequest) error {
	if r.Count < -1 || (r.Count == 0) == (len(r.DeviceIDs) == 0) {
		return errors.New("give either a count (-1 for all) or device ids")
	}
	return nil
}

// applyDevices adds devices; what a mapping leaves out is as engines' command lines
// fill it in.
func (s *Settings) applyDevices(host *container.HostConfig) {
	for _, d := range s.Devices {
		if d.PathInContainer == "" {
			d.PathInContainer = d.PathOnHost
		}
		if d.CgroupPermissions == "" {
			d.CgroupPermissions = "rwm"
		}
		host.Devices = append(host.Devices, d)
	}
	host.DeviceCgroupRules = append(host.DeviceCgroupRules, s.DeviceCgroupRules...)
	host.DeviceRequests = append(host.DeviceRequests, s.DeviceRequests...)
}
