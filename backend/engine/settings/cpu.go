package settings

import (
	"errors"
	"strings"

	"github.com/moby/moby/api/types/container"
)

// defaultPeriod is the kernel's CPU period, in microseconds.
const defaultPeriod = 100000

// minQuota is the least quota the kernel takes, in microseconds.
const minQuota = 1000

func nanoCPUs(n int64) error {
	if n != 0 && (n < 1e7 || n > 4096e9) {
		return errors.New("use billionths of a CPU, such as 1500000000 for 1.5 CPUs, at least 10000000; 0 for no limit")
	}
	return nil
}

func cpuQuota(n int64) error {
	if n != -1 && n < minQuota {
		return errors.New("use microseconds in each cpu_period, at least 1000, or -1 for no limit")
	}
	return nil
}

// toSwap is toSize and -1.
func toSwap(v any) (int64, error) {
	if n, err := toInt(v); err == nil && n == -1 {
		return n, nil
	}
	n, err := toSize(v)
	if err != nil {
		err = errors.New(strings.TrimSpace(err.Error()) + ", or -1 for any swap")
	}
	return n, err
}

// applyCPU lays the CPU settings over the default, which is in NanoCPUs: engines take
// either those or a quota.
func (s *Settings) applyCPU(host *container.HostConfig) {
	switch {
	case s.NanoCPUs != nil:
		host.NanoCPUs = *s.NanoCPUs
	case s.CPUQuota != nil || s.CPUPeriod != nil:
		period := int64(defaultPeriod)
		if s.CPUPeriod != nil {
			period = *s.CPUPeriod
		}
		// A period alone keeps the limit there was.
		quota := max(int64(float64(host.NanoCPUs)/1e9*float64(period)), minQuota)
		switch {
		case s.CPUQuota != nil:
			quota = *s.CPUQuota
		case host.NanoCPUs == 0:
			quota = -1
		}
		host.NanoCPUs, host.CPUPeriod, host.CPUQuota = 0, period, quota
	}
	setIf(&host.CPUShares, s.CPUShares)
	setIf(&host.CPURealtimePeriod, s.CPURealtimePeriod)
	setIf(&host.CPURealtimeRuntime, s.CPURealtimeRuntime)
	setText(&host.CpusetCpus, s.CpusetCPUs)
	setText(&host.CpusetMems, s.CpusetMems)
}

func setIf[T any](to *T, value *T) {
	if value != nil {
		*to = *value
	}
}

func setText(to *string, value string) {
	if value != "" {
		*to = value
	}
}
