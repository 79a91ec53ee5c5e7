package settings

import "math"

const cpuList = `[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*`

var resourceOptions = []option{
	{
		KeyInfo: KeyInfo{Name: "mem_limit", Type: "size", Example: "512m", Meaning: "memory of the whole sandbox, in place of its memory limit; 0 lifts it"},
		codec:   pointer(toSize, func(s *Settings) **int64 { return &s.Memory }, memory(0)),
	},
	{
		KeyInfo: KeyInfo{Name: "mem_reservation", Type: "size", Example: "256m", Meaning: "soft limit, held when the host is short of memory; below the memory limit"},
		codec:   pointer(toSize, func(s *Settings) **int64 { return &s.MemoryReservation }, memory(0)),
	},
	{
		KeyInfo: KeyInfo{Name: "memswap_limit", Type: "size", Example: "1g", Meaning: "memory and swap together; -1: any swap; default: the memory limit, so no swap"},
		codec:   pointer(toSwap, func(s *Settings) **int64 { return &s.MemorySwap }, memory(-1)),
	},
	{
		KeyInfo: KeyInfo{Name: "mem_swappiness", Type: "integer", Example: "0", Meaning: "how readily pages are swapped out, 0 to 100"},
		codec:   pointer(toInt, func(s *Settings) **int64 { return &s.MemorySwappiness }, within(0, 100)),
	},
	{
		KeyInfo: KeyInfo{Name: "oom_kill_disable", Type: "boolean", Example: "false", Meaning: "let processes hang at the memory limit instead of killing them"},
		codec:   pointer(toBool, func(s *Settings) **bool { return &s.OOMKillDisable }, anything),
	},
	{
		KeyInfo: KeyInfo{Name: "oom_score_adj", Type: "integer", Example: "500", Meaning: "how readily the kernel kills it when the host is out of memory, -1000 to 1000"},
		codec:   pointer(toSmall[int], func(s *Settings) **int { return &s.OOMScoreAdj }, func(n int) error { return within(-1000, 1000)(int64(n)) }),
	},
	{
		KeyInfo: KeyInfo{Name: "shm_size", Type: "size", Example: "128m", Meaning: "size of /dev/shm, which counts as memory; default: at most 64m"},
		codec:   pointer(toSize, func(s *Settings) **int64 { return &s.ShmSize }, within(1, math.MaxInt64)),
	},
	{
		KeyInfo: KeyInfo{Name: "nano_cpus", Type: "integer", Example: "1500000000", Meaning: "CPUs in billionths, in place of the sandbox's CPU limit; 0 lifts it"},
		codec:   pointer(toInt, func(s *Settings) **int64 { return &s.NanoCPUs }, nanoCPUs),
	},
	{
		KeyInfo: KeyInfo{Name: "cpu_quota", Type: "integer", Example: "50000", Meaning: "microseconds of CPU time in each cpu_period, in place of the CPU limit; -1 lifts it"},
		codec:   pointer(toInt, func(s *Settings) **int64 { return &s.CPUQuota }, cpuQuota),
	},
	{
		KeyInfo: KeyInfo{Name: "cpu_period", Type: "integer", Example: "100000", Meaning: "length of a period in microseconds, 1000 to 1000000; default 100000"},
		codec:   pointer(toInt, func(s *Settings) **int64 { return &s.CPUPeriod }, within(1000, 1000000)),
	},
	{
		KeyInfo: KeyInfo{Name: "cpu_shares", Type: "integer", Example: "512", Meaning: "weight against other containers when CPUs are short, 2 to 262144"},
		codec:   pointer(toInt, func(s *Settings) **int64 { return &s.CPUShares }, within(2, 262144)),
	},
	{
		KeyInfo: KeyInfo{Name: "cpu_rt_period", Type: "integer", Example: "1000000", Meaning: "period of real-time scheduling in microseconds"},
		codec:   pointer(toInt, func(s *Settings) **int64 { return &s.CPURealtimePeriod }, within(1, math.MaxInt32)),
	},
	{
		KeyInfo: KeyInfo{Name: "cpu_rt_runtime", Type: "integer", Example: "950000", Meaning: "microseconds of real-time CPU time in each cpu_rt_period"},
		codec:   pointer(toInt, func(s *Settings) **int64 { return &s.CPURealtimeRuntime }, within(1, math.MaxInt32)),
	},
	{
		KeyInfo: KeyInfo{Name: "cpuset_cpus", Type: "text", Example: "0-1", Meaning: "CPUs it may run on, such as 0-3 or 0,2"},
		codec:   text(func(s *Settings) *string { return &s.CpusetCPUs }, matching(cpuList, "numbers and ranges, such as 0-3 or 0,2")),
	},
	{
		KeyInfo: KeyInfo{Name: "cpuset_mems", Type: "text", Example: "0", Meaning: "memory nodes it may use, such as 0 or 0-1"},
		codec:   text(func(s *Settings) *string { return &s.CpusetMems }, matching(cpuList, "numbers and ranges, such as 0 or 0-1")),
	},
	{
		KeyInfo: KeyInfo{Name: "pids_limit", Type: "integer", Example: "64", Meaning: "processes and threads, in place of the sandbox's limit; -1 lifts it"},
		codec:   pointer(toInt, func(s *Settings) **int64 { return &s.PIDs }, within(-1, math.MaxInt32)),
	},
	{
		KeyInfo: KeyInfo{Name: "ulimits", Type: "list", Example: "nofile=1024:2048", Meaning: "limits of each process: NAME=SOFT[:HARD], -1 for none, or objects with Name, Soft and Hard"},
		codec:   list(one(toUlimit), ulimitsField, validUlimit),
	},
	{
		KeyInfo: KeyInfo{Name: "blkio_weight", Type: "integer", Example: "300", Meaning: "weight of block input and output, 10 to 1000"},
		codec:   pointer(toSmall[uint16], func(s *Settings) **uint16 { return &s.BlkioWeight }, func(n uint16) error { return within(10, 1000)(int64(n)) }),
	},
	{
		KeyInfo: KeyInfo{Name: "blkio_weight_device", Type: "list", Example: "/dev/sda:200", Meaning: "the same for a device: PATH:WEIGHT, or objects with Path and Weight"},
		codec:   list(one(toWeight), weightsField, validWeight),
	},
	throttle("device_read_bps", "/dev/sda:10m", "bytes a second read from a device: PATH:SIZE, or objects with Path and Rate", true, readBps),
	throttle("device_write_bps", "/dev/sda:10m", "bytes a second written to a device: PATH:SIZE, or objects with Path and Rate", true, writeBps),
	throttle("device_read_iops", "/dev/sda:1000", "reads a second from a device: PATH:NUMBER, or objects with Path and Rate", false, readIOps),
	throttle("device_write_iops", "/dev/sda:1000", "writes a second to a device: PATH:NUMBER, or objects with Path and Rate", false, writeIOps),
}
