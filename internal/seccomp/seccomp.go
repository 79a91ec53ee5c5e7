// Package seccomp makes the system call filter that sandboxed code runs under.
//
// The filter is an allow-list. What is not on it is denied with EPERM, or, where
// C libraries probe for a call and know how to do without it, with ENOSYS. It is
// data ([Describe]) that a small assembler turns into a classic BPF program, so
// it can be built on any operating system for any supported architecture.
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
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
)

// ErrArch means that there is no filter for an architecture.
var ErrArch = errors.New("no system call filter for this architecture")

// maxProgram is the kernel's BPF_MAXINSNS: a longer program is not loaded.
const maxProgram = 4096

// An abi is what a filter must know of an architecture.
type abi struct {
	audit   uint32 // AUDIT_ARCH_ value of the only entry that is let in
	numbers []number
	// foreign is the bit that marks calls of a second table behind the same
	// audit value (x32 on amd64); 0 when there is none.
	foreign uint32
}

// A number is a system call's.
type number struct {
	name string
	nr   uint32
}

var abis = map[string]abi{
	"amd64": {audit: 0xc000003e, numbers: numbersX86, foreign: 0x40000000},
	"arm64": {audit: 0xc00000b7, numbers: numbersARM},
}

// Filter returns the filter for a GOARCH, amd64 or arm64, as the little-endian
// array of struct sock_filter (8 bytes each) that seccomp(2) loads. It fails with
// ErrArch for any other. The result is shared: do not change it.
func Filter(arch string) ([]byte, error) {
	switch arch {
	case "amd64":
		return amd64()
	case "arm64":
		return arm64()
	}
	return encode(arch)
}

// Each is made at most once, and only when asked for: it is on the way to every
// sandbox.
var (
	amd64 = sync.OnceValues(func() ([]byte, error) { return encode("amd64") })
	arm64 = sync.OnceValues(func() ([]byte, error) { return encode("arm64") })
)

func encode(arch string) ([]byte, error) {
	prog, err := assemble(arch)
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, len(prog)*8)
	for _, i := range prog {
		out = binary.LittleEndian.AppendUint16(out, i.code)
		out = append(out, i.jt, i.jf)
		out = binary.LittleEndian.AppendUint32(out, i.k)
	}
	return out, nil
}

func assemble(arch string) (block, error) {
	a, ok := abis[arch]
	if !ok {
		return nil, fmt.Errorf("seccomp: %w: %q (known: amd64, arm64)", ErrArch, arch)
	}
	// A 32-bit entry has another audit value and other numbers for the same
	// calls, so nothing of it is looked at.
	prog := cond(load(offArch), jmpEQ, a.audit, entry(a), errno(ePERM))
	if len(prog) > maxProgram {
		return nil, fmt.Errorf("seccomp: filter for %s has %d instructions, the kernel loads at most %d", arch, len(prog), maxProgram)
	}
	return prog, nil
}
