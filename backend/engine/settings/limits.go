package settings

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/docker/go-units"
	"github.com/moby/moby/api/types/blkiodev"
	"github.com/moby/moby/api/types/container"
)

const (
	// minMemory is the least memory limit that engines accept, in bytes.
	minMemory = 6 << 20
	// defaultPeriod is the kernel's CPU period, and minQuota the least quota that it
	// takes, in microseconds.
	defaultPeriod = 100000
	minQuota      = 1000
)

// memory allows limits that can work; lifted is the value that means no limit.
func memory(lifted int64) func(int64) error {
	return func(n int64) error {
		if n != lifted && n < minMemory {
			return fmt.Errorf("use at least 6m, or %d for no limit", lifted)
		}
		return nil
	}
}

// toSwap is toSize and -1.
func toSwap(v any) (int64, error) {
	if n, err := toInt(v); err == nil && n == -1 {
		return n, nil
	}
	n, err := toSize(v)
	if err != nil {
		err = fmt.Errorf("%w, or -1 for any swap", err)
	}
	return n, err
}

func nanoCPUs(n int64) error {
	if n != 0 && (n < 1e7 || n > 4096e9) {
		return errors.New("use billionths of a CPU, such as 1500000000 for 1.5 CPUs, at least 10000000; 0 for no limit")
	}
	return nil
}

// toCPUs decodes whole CPUs into billionths. docker-py has cpu_count for Windows only; others mean this by it.
func toCPUs(v any) (int64, error) {
	n, err := toInt(v)
	if err != nil || n < 1 || n > 4096 {
		err = errors.New("use a whole number of CPUs from 1 to 4096")
	}
	return n * 1e9, err
}

func cpuQuota(n int64) error {
	if n != -1 && n < minQuota {
		return errors.New("use microseconds in each cpu_period, at least 1000, or -1 for no limit")
	}
	return nil
}

const useUlimit = "NAME=SOFT[:HARD], such as nofile=1024:2048, or an object with Name, Soft and Hard: a name is one of core, cpu, data, fsize, locks, memlock, msgqueue, nice, nofile, nproc, rss, rtprio, rttime, sigpending and stack, a limit at least 0, or -1 for none, and the soft one must not be above the hard one"

// toUlimit decodes NAME=SOFT[:HARD] or an object; a limit that is left out is as the
// other.
func toUlimit(v any) (container.Ulimit, error) {
	text, err := toText(v)
	if err != nil {
		o, err := toObject[struct {
			Name       string
			Soft, Hard *int64
		}](v, useUlimit)
		soft, hard := cmp.Or(o.Soft, o.Hard), cmp.Or(o.Hard, o.Soft)
		if err != nil || soft == nil {
			return container.Ulimit{}, cmp.Or(err, errors.New("use "+useUlimit))
		}
		return container.Ulimit{Name: o.Name, Soft: *soft, Hard: *hard}, nil
	}
	u, err := units.ParseUlimit(text)
	if err != nil {
		return container.Ulimit{}, fmt.Errorf("%w: use %s", err, useUlimit)
	}
	return *u, nil
}

func validUlimit(u container.Ulimit) error {
	if u.Soft < -1 || u.Hard < -1 {
		return errors.New("use " + useUlimit)
	}
	_, err := toUlimit(u.String())
	return err
}

// cutDevice cuts PATH:NUMBER. Paths may hold colons, such as those in /dev/disk/by-path.
func cutDevice(text string) (path, number string) {
	i := strings.LastIndexByte(text, ':')
	return text[:max(i, 0)], text[i+1:]
}

const useWeight = "PATH:WEIGHT, such as /dev/sda:200, or an object with Path and Weight"

func parseWeight(text string) (blkiodev.WeightDevice, error) {
	path, number := cutDevice(text)
	weight, err := toSmall[uint16](number)
	if err != nil {
		err = errors.New("use " + useWeight)
	}
	return blkiodev.WeightDevice{Path: path, Weight: weight}, err
}

func validWeight(d blkiodev.WeightDevice) error {
	return cmp.Or(absolute(d.Path), within[uint16](10, 1000)(d.Weight))
}

func toBps(v any) (blkiodev.ThrottleDevice, error) {
	return toThrottle(v, toSize, "PATH:SIZE, such as /dev/sda:10m, or an object with Path and Rate")
}

func toIOps(v any) (blkiodev.ThrottleDevice, error) {
	return toThrottle(v, toInt, "PATH:NUMBER, such as /dev/sda:1000, or an object with Path and Rate")
}

// toThrottle reads text, or an object whose Rate, unlike in the engine's API, may be a
// text with a unit.
func toThrottle(v any, decode func(any) (int64, error), use string) (blkiodev.ThrottleDevice, error) {
	type object struct {
		Path string
		Rate any
	}
	var o object
	text, err := toText(v)
	if err == nil {
		o.Path, o.Rate = cutDevice(text)
	} else if o, err = toObject[object](v, use); err != nil {
		return blkiodev.ThrottleDevice{}, err
	}
	rate, err := decode(o.Rate)
	if err != nil || rate <= 0 {
		return blkiodev.ThrottleDevice{}, errors.New("use " + use)
	}
	return blkiodev.ThrottleDevice{Path: o.Path, Rate: uint64(rate)}, nil
}

func validThrottle(d blkiodev.ThrottleDevice) error {
	if d.Rate == 0 || d.Rate > math.MaxInt64 {
		return errors.New("use a rate of at least 1")
	}
	return absolute(d.Path)
}

func (s *Settings) limitsConflict() error {
	switch {
	case s.NanoCPUs != nil && (s.CPUQuota != nil || s.CPUPeriod != nil):
		return fault("nano_cpus", "contradicts cpu_quota and cpu_period: they are two ways to limit CPUs; use one")
	case is(s.OOMKillDisable, true) && is(s.Memory, 0):
		return fault("oom_kill_disable", "needs a memory limit: without one the host itself runs out of memory")
	}
	return nil
}

func (s *Settings) applyLimits(host *container.HostConfig) error {
	if s.Memory != nil {
		host.Memory, host.MemorySwap = *s.Memory, *s.Memory // no swap
	}
	if swap := s.MemorySwap; swap != nil {
		switch {
		case *swap != -1 && host.Memory == 0:
			return fault("memswap_limit", "memory and swap cannot be limited together without a memory limit: set mem_limit")
		case *swap != -1 && *swap < host.Memory:
			return fault("memswap_limit", "%d bytes of memory and swap are less than the memory limit of %d bytes alone", *swap, host.Memory)
		}
		host.MemorySwap = *swap
	}
	if soft := s.MemoryReservation; soft != nil {
		if host.Memory != 0 && *soft > host.Memory {
			return fault("mem_reservation", "%d bytes are more than the memory limit of %d bytes", *soft, host.Memory)
		}
		host.MemoryReservation = *soft
	}
	host.MemorySwappiness = cmp.Or(s.MemorySwappiness, host.MemorySwappiness)
	host.OomKillDisable = cmp.Or(s.OOMKillDisable, host.OomKillDisable)
	setIf(&host.OomScoreAdj, s.OOMScoreAdj)
	setIf(&host.ShmSize, s.ShmSize)
	s.applyCPU(host)
	if s.PIDs != nil {
		n := cmp.Or(*s.PIDs, -1)
		host.PidsLimit = &n
	}
	// Each ulimit in the place of a default of the same name.
	for _, u := range s.Ulimits {
		host.Ulimits = slices.DeleteFunc(slices.Clone(host.Ulimits), func(d *container.Ulimit) bool { return d.Name == u.Name })
		host.Ulimits = append(host.Ulimits, &u)
	}
	setIf(&host.BlkioWeight, s.BlkioWeight)
	host.BlkioWeightDevice = append(host.BlkioWeightDevice, pointers(s.BlkioWeightDevice)...)
	host.BlkioDeviceReadBps = append(host.BlkioDeviceReadBps, pointers(s.DeviceReadBps)...)
	host.BlkioDeviceWriteBps = append(host.BlkioDeviceWriteBps, pointers(s.DeviceWriteBps)...)
	host.BlkioDeviceReadIOps = append(host.BlkioDeviceReadIOps, pointers(s.DeviceReadIOps)...)
	host.BlkioDeviceWriteIOps = append(host.BlkioDeviceWriteIOps, pointers(s.DeviceWriteIOps)...)
	return nil
}

// applyCPU lays the CPU settings over the default, which is in NanoCPUs: engines take
// either those or a quota.
func (s *Settings) applyCPU(host *container.HostConfig) {
	switch {
	case s.NanoCPUs != nil:
		host.NanoCPUs = *s.NanoCPUs
	case s.CPUQuota != nil || s.CPUPeriod != nil:
		period := int64(defaultPeriod)
		setIf(&period, s.CPUPeriod)
		// A period alone keeps the limit there was.
		quota := max(int64(float64(host.NanoCPUs)/1e9*float64(period)), minQuota)
		if host.NanoCPUs == 0 {
			quota = -1
		}
		setIf(&quota, s.CPUQuota)
		host.NanoCPUs, host.CPUPeriod, host.CPUQuota = 0, period, quota
	}
	setIf(&host.CPUShares, s.CPUShares)
	setIf(&host.CPURealtimePeriod, s.CPURealtimePeriod)
	setIf(&host.CPURealtimeRuntime, s.CPURealtimeRuntime)
	host.CpusetCpus = cmp.Or(s.CpusetCPUs, host.CpusetCpus)
	host.CpusetMems = cmp.Or(s.CpusetMems, host.CpusetMems)
}

func setIf[T any](to *T, value *T) {
	if value != nil {
		*to = *value
	}
}

// pointers returns pointers to copies of the items.
func pointers[T any](values []T) []*T {
	var out []*T
	for _, v := range values {
		out = append(out, &v)
	}
	return out
}
