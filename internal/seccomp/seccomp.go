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
