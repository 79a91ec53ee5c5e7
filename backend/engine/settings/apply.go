package settings

import "github.com/moby/moby/api/types/container"

// Apply lays the settings over a sandbox's defaults, which cfg and host already hold:
// what was not set stays. The mounts of host are taken for the sandbox's own, which
// nothing may cover; its tmpfs give way. Networks and ports need no networking
// configuration besides. After an error cfg and host are of no use.
func (s Settings) Apply(cfg *container.Config, host *container.HostConfig) error {
	if err := s.Validate(); err != nil {
		return err
	}
	if err := s.applyMemory(host); err != nil {
		return err
	}
	s.applyCPU(host)
	s.applyBlkio(host)
	s.applyUlimits(host)
	s.applyCapabilities(host)
	if err := s.applySecurityOpt(host); err != nil {
		return err
	}
	s.applyNamespaces(host)
	s.applyDevices(host)
	s.applyNetwork(cfg, host)
	if err := s.applyFiles(host); err != nil {
		return err
	}
	s.applyProcess(cfg, host)
	return nil
}

func (s *Settings) applyMemory(host *container.HostConfig) error {
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
	if s.PIDs != nil {
		n := *s.PIDs
		if n == 0 {
			n = -1
		}
		host.PidsLimit = &n
	}
	if s.MemorySwappiness != nil {
		host.MemorySwappiness = s.MemorySwappiness
	}
	if s.OOMKillDisable != nil {
		host.OomKillDisable = s.OOMKillDisable
	}
	setIf(&host.OomScoreAdj, s.OOMScoreAdj)
	setIf(&host.ShmSize, s.ShmSize)
	return nil
}

func (s *Settings) applyNamespaces(host *container.HostConfig) {
	setIf(&host.Privileged, s.Privileged)
	setIf(&host.ReadonlyRootfs, s.ReadOnlyRoot)
	if s.UsernsMode != "" {
		host.UsernsMode = container.UsernsMode(s.UsernsMode)
	}
	if s.IpcMode != "" {
		host.IpcMode = container.IpcMode(s.IpcMode)
	}
	if s.PidMode != "" {
		host.PidMode = container.PidMode(s.PidMode)
	}
	if s.UTSMode != "" {
		host.UTSMode = container.UTSMode(s.UTSMode)
	}
	if s.CgroupnsMode != "" {
		host.CgroupnsMode = container.CgroupnsMode(s.CgroupnsMode)
	}
	setText(&host.CgroupParent, s.CgroupParent)
	host.Sysctls = merged(host.Sysctls, s.Sysctls)
}
