// Package seccomp holds the system call filter that sandboxed code runs under.
//
// The filter is an allow-list. What is not on it is denied with EPERM, or, where
// C libraries probe for a call and know how to do without it, with ENOSYS. The list,
// with the reason of each group, is in gen/groups.go; go generate makes the filters of
// it, and a test compares them.
//
// Some choices that are felt: debuggers, strace and the leak and thread
// sanitizers do not work, for they need ptrace or a personality without address
// randomisation. Files may be made setuid, since openat2 keeps the mode where no
// filter sees it; no_new_privs and nosuid mounts make them inert. CPU affinity
// may be set, for numerical libraries do; the CPU limit bounds the time, not the
// place.
package seccomp

//go:generate go run ./gen

import (
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
)

//go:embed filter_amd64.bpf
var amd64 []byte

//go:embed filter_arm64.bpf
var arm64 []byte

// ErrArch means that there is no filter for an architecture.
var ErrArch = errors.New("no system call filter for this architecture")

// Filter returns the filter for a GOARCH, amd64 or arm64, as the little-endian
// array of struct sock_filter (8 bytes each) that seccomp(2) loads. It fails with
// ErrArch for any other. The result is shared: do not change it.
func Filter(arch string) ([]byte, error) {
	switch arch {
	case "amd64":
		return amd64, nil
	case "arm64":
		return arm64, nil
	}
	return nil, fmt.Errorf("seccomp: %w: %q (known: amd64, arm64)", ErrArch, arch)
}

// Entering returns a filter that is as the one of Filter, and allows setns. It is for a process that enters other
// sandboxes, whose own filter it is to load then.
func Entering(arch string) ([]byte, error) {
	filter, err := Filter(arch)
	if err != nil {
		return nil, err
	}
	numbers := map[string][2]uint32{"amd64": {0xc000003e, 308}, "arm64": {0xc00000b7, 268}}[arch] // AUDIT_ARCH_*, setns
	const load, equal, end = 0x20, 0x15, 0x06                                                     // BPF_LD|BPF_W|BPF_ABS, BPF_JMP|BPF_JEQ|BPF_K, BPF_RET|BPF_K
	var begin []byte
	for _, i := range []struct {
		code   uint16
		jt, jf uint8
		k      uint32
	}{{load, 0, 0, 4}, {equal, 0, 3, numbers[0]}, {load, 0, 0, 0}, {equal, 0, 1, numbers[1]}, {end, 0, 0, 0x7fff0000}} {
		begin = binary.LittleEndian.AppendUint16(begin, i.code)
		begin = append(begin, i.jt, i.jf)
		begin = binary.LittleEndian.AppendUint32(begin, i.k)
	}
	return append(begin, filter...), nil
}
