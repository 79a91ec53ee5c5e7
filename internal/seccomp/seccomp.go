// Package seccomp holds the system call filter that sandboxed code runs under.
//
// The filter is an allow-list. What is not on it is denied with EPERM, or, where
// C libraries probe for a call and know how to do without it, with ENOSYS. The list,
// with the reason of each group, is in gen/groups.go and, for code in no namespaces of
// its own, gen/process.go; go generate makes the filters of
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
	"embed"
	"encoding/binary"
	"errors"
	"fmt"
)

//go:embed *.bpf
var programs embed.FS

// ErrArch means that there is no filter for an architecture.
var ErrArch = errors.New("no system call filter for this architecture")

// Filter returns the filter for a GOARCH, amd64 or arm64, as the little-endian
// array of struct sock_filter (8 bytes each) that seccomp(2) loads. It fails with
// ErrArch for any other.
func Filter(arch string) ([]byte, error) { return program("filter", arch) }

func program(name, arch string) ([]byte, error) {
	filter, err := programs.ReadFile(name + "_" + arch + ".bpf")
	if err != nil {
		return nil, fmt.Errorf("seccomp: %w: %q (known: amd64, arm64)", ErrArch, arch)
	}
	return filter, nil
}

// ProcessOptions tell what surrounds code that is in no namespaces of its own.
type ProcessOptions struct {
	// TCP lets it make TCP sockets, to connect to a proxy. Without, it has no sockets but pairs.
	TCP bool
	// Shared is for code whose uid others outside the sandbox have too, above all who has started it. What reaches
	// their processes and files, and Landlock does not know, is denied then.
	Shared bool
}

func (o ProcessOptions) suffix() string {
	out := "-own"
	if o.Shared {
		out = "-shared"
	}
	if o.TCP {
		out += "-tcp"
	}
	return out
}

// Process returns a filter that is as the one of Filter, and denies what reaches beyond code in no namespaces of its own.
// It is one half, of which a Landlock domain that scopes signals and abstract sockets, and restricts TCP, is the other.
func Process(arch string, o ProcessOptions) ([]byte, error) {
	return program("process"+o.suffix(), arch)
}

// Notify returns a filter for what that of Process lets through and neither can decide on, since it is in memory that
// the code can change: paths of files whose attributes are to be changed, where the uid is shared, and addresses to
// connect to. It has these calls answered by the listener that it is loaded with, and lets all others through. Of
// several filters the strictest verdict holds. It is nil where nothing needs it.
func Notify(arch string, o ProcessOptions) ([]byte, error) {
	if !o.TCP && !o.Shared {
		return nil, nil
	}
	return program("notify"+o.suffix(), arch)
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
