package settings

import (
	"encoding/json"
	"errors"
	"math"
	"strings"

	"github.com/moby/moby/api/types/blkiodev"
	"github.com/moby/moby/api/types/container"
)

func weightsField(s *Settings) *[]blkiodev.WeightDevice { return &s.BlkioWeightDevice }

func readBps(s *Settings) *[]blkiodev.ThrottleDevice   { return &s.DeviceReadBps }
func writeBps(s *Settings) *[]blkiodev.ThrottleDevice  { return &s.DeviceWriteBps }
func readIOps(s *Settings) *[]blkiodev.ThrottleDevice  { return &s.DeviceReadIOps }
func writeIOps(s *Settings) *[]blkiodev.ThrottleDevice { return &s.DeviceWriteIOps }

// throttle is the option of a rate for each device; size allows units.
func throttle(name, example, meaning string, size bool, field func(*Settings) *[]blkiodev.ThrottleDevice) option {
	return option{
		KeyInfo: KeyInfo{Name: name, Type: "list", Example: example, Meaning: meaning},
		codec:   list(one(func(v any) (blkiodev.ThrottleDevice, error) { return toThrottle(v, size) }), field, validThrottle),
	}
}

func toWeight(v any) (blkiodev.WeightDevice, error) {
	const use = "PATH:WEIGHT, such as /dev/sda:200, or an object with Path and Weight"
	if m, ok := v.(map[string]any); ok {
		return toObject[blkiodev.WeightDevice](m, use)
	}
	path, number, err := pathAndNumber(v, use)
	if err != nil {
		return blkiodev.WeightDevice{}, err
	}
	weight, err := toSmall[uint16](number)
	return blkiodev.WeightDevice{Path: path, Weight: weight}, err
}

func validWeight(d blkiodev.WeightDevice) error {
	if err := absolute(d.Path); err != nil {
		return err
	}
	return within(10, 1000)(int64(d.Weight))
}

func toThrottle(v any, size bool) (blkiodev.ThrottleDevice, error) {
	use := "PATH:NUMBER, such as /dev/sda:1000, or an object with Path and Rate"
	decode := toInt
	if size {
		use, decode = "PATH:SIZE, such as /dev/sda:10m, or an object with Path and Rate", toSize
	}
	var (
		path   string
		number any
		err    error
	)
	if m, ok := v.(map[string]any); ok {
		path, number, err = throttleObject(m, use)
	} else {
		path, number, err = pathAndNumber(v, use)
	}
	if err != nil {
		return blkiodev.ThrottleDevice{}, err
	}
	rate, err := decode(number)
	if err == nil && rate <= 0 {
		err = errors.New("use " + use)
	}
	return blkiodev.ThrottleDevice{Path: path, Rate: uint64(rate)}, err
}

// throttleObject reads an object whose Rate, unlike in the engine's API, may be a text
// with a unit.
func throttleObject(m map[string]any, use string) (path string, rate any, err error) {
	type object struct {
		Path string
		Rate json.RawMessage
	}
	o, err := toObject[object](m, use)
	if err == nil {
		rate, err = decodeJSON(o.Rate)
	}
	if err != nil {
		return "", nil, errors.New("use " + use)
	}
	return o.Path, rate, nil
}

func validThrottle(d blkiodev.ThrottleDevice) error {
	if d.Rate == 0 || d.Rate > math.MaxInt64 {
		return errors.New("use a rate of at least 1")
	}
	return absolute(d.Path)
}

// pathAndNumber cuts PATH:NUMBER.
func pathAndNumber(v any, use string) (path string, number any, err error) {
	text, err := toText(v)
	i := strings.LastIndexByte(text, ':')
	if err != nil || i < 0 {
		return "", nil, errors.New("use " + use)
	}
	return text[:i], text[i+1:], nil
}

func (s *Settings) applyBlkio(host *container.HostConfig) {
	setIf(&host.BlkioWeight, s.BlkioWeight)
	host.BlkioWeightDevice = append(host.BlkioWeightDevice, pointers(s.BlkioWeightDevice)...)
	host.BlkioDeviceReadBps = append(host.BlkioDeviceReadBps, pointers(s.DeviceReadBps)...)
	host.BlkioDeviceWriteBps = append(host.BlkioDeviceWriteBps, pointers(s.DeviceWriteBps)...)
	host.BlkioDeviceReadIOps = append(host.BlkioDeviceReadIOps, pointers(s.DeviceReadIOps)...)
	host.BlkioDeviceWriteIOps = append(host.BlkioDeviceWriteIOps, pointers(s.DeviceWriteIOps)...)
}

// pointers returns pointers to copies of the items.
func pointers[T any](values []T) []*T {
	var out []*T
	for _, v := range values {
		out = append(out, &v)
	}
	return out
}
