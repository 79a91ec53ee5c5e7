// Command gen writes the system call filters of package seccomp. It is an allow-list
// in groups (groups.go) that a small assembler (bpf.go) turns into a classic BPF
// program. The numbers of the calls come from golang.org/x/sys, for any architecture on
// any other.
package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

func main() {
	for arch := range abis {
		filters, err := programs(arch)
		for name, filter := range filters {
			if err == nil {
				err = os.WriteFile(name, filter, 0o644)
			}
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "write the system call filters of %s: %v\n", arch, err)
			os.Exit(1)
		}
	}
}

// programs are the files of an architecture, by name.
func programs(arch string) (map[string][]byte, error) {
	a, err := abiOf(arch)
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	for _, v := range variants {
		if out[v.name()+"_"+arch+".bpf"], err = encode(assemble(a, v)); err != nil {
			return nil, err
		}
		if len(v.notified()) == 0 {
			continue
		}
		if out["notify"+v.suffix()+"_"+arch+".bpf"], err = encode(v.assembleNotify(a)); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// maxProgram is the kernel's BPF_MAXINSNS: a longer program is not loaded.
const maxProgram = 4096

// An abi is what a filter must know of an architecture.
type abi struct {
	audit   uint32            // AUDIT_ARCH_ value of the only entry that is let in
	numbers map[string]uint32 // of the system calls, by name
	// foreign is the bit that marks calls of a second table behind the same
	// audit value (x32 on amd64); 0 when there is none.
	foreign uint32
}

// abis are the architectures with a filter, by GOARCH.
var abis = map[string]abi{
	"amd64": {audit: 0xc000003e, foreign: 0x40000000},
	"arm64": {audit: 0xc00000b7},
}

var constant = regexp.MustCompile(`(?m)^\tSYS_(\w+)\s*= (\d+)$`)

// abiOf reads the numbers of an architecture.
func abiOf(arch string) (abi, error) {
	list := exec.Command("go", "list", "-f", "{{.Dir}}", "golang.org/x/sys/unix")
	// The package of Linux is in the same directory as that of any other system.
	list.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+arch)
	dir, err := list.Output()
	if err != nil {
		return abi{}, fmt.Errorf("find golang.org/x/sys/unix: %w; run go mod download", err)
	}
	source, err := os.ReadFile(filepath.Join(string(bytes.TrimSpace(dir)), "zsysnum_linux_"+arch+".go"))
	if err != nil {
		return abi{}, err
	}
	a := abis[arch]
	a.numbers = map[string]uint32{}
	for _, c := range constant.FindAllStringSubmatch(string(source), -1) {
		if c[1] == "ARCH_SPECIFIC_SYSCALL" {
			continue // where a range of numbers begins, and no call
		}
		nr, err := strconv.ParseUint(c[2], 10, 32)
		if err != nil {
			return abi{}, fmt.Errorf("the number of %s: %w", c[1], err)
		}
		a.numbers[strings.ToLower(c[1])] = uint32(nr)
	}
	return a, nil
}

// encode is a program as the little-endian array of struct sock_filter that
// seccomp(2) loads.
func encode(prog block) ([]byte, error) {
	if len(prog) > maxProgram {
		return nil, fmt.Errorf("the filter has %d instructions, the kernel loads at most %d", len(prog), maxProgram)
	}
	out := make([]byte, 0, len(prog)*8)
	for _, i := range prog {
		out = binary.LittleEndian.AppendUint16(out, i.code)
		out = append(out, i.jt, i.jf)
		out = binary.LittleEndian.AppendUint32(out, i.k)
	}
	return out, nil
}

// assemble refuses all of another entry: a 32-bit one has another audit value and other
// numbers for the same calls, so nothing of it is looked at.
func assemble(a abi, f variant) block {
	return cond(load(offArch), jmpEQ, a.audit, entry(a, f), errno(ePERM))
}
