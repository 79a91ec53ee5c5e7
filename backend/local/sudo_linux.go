package local

import (
	_ "embed"
	"encoding/binary"
	"runtime"

	"github.com/llmsandbox/llmsandbox/internal/environ"
)

// sudoDir holds sudo, and what it needs to become root. It comes first in PATH: an image's own has no set-user-ID bit.
const sudoDir = "/run/sudo"

//go:embed sudo.sh
var sudoScript []byte

// withSudo is an environment in which sudo is found.
func withSudo(env []string) []string {
	return environ.Override(env, []string{"PATH=" + sudoDir + ":" + environ.Value(env, "PATH")})
}

// sudoMounts returns a read-only file system that holds sudo.
func sudoMounts() []mount {
	return []mount{
		{kind: mountTmpfs, target: sudoDir, mode: 0o755, size: 64 << 10, inodes: 8, readOnly: true},
		{kind: makeFile, target: sudoDir + "/sudo", mode: 0o755, data: sudoScript},
		{kind: makeFile, target: sudoDir + "/as-root", mode: 0o755, data: asRoot(runtime.GOARCH)},
	}
}

// asRoot is a program that executes the one in its first argument, with those after it, as root. It has no privilege of its own:
// it uses the capabilities that code has where it may become root. There is no program for that which every image has. Of
// another architecture than amd64 and arm64, for which there is no system call filter either, it is empty.
func asRoot(arch string) []byte {
	var machine uint16
	var code []byte
	switch arch {
	case "amd64":
		machine = 62 // EM_X86_64
		code = []byte{
			0x31, 0xff, // xor edi, edi
			0x31, 0xf6, // xor esi, esi
			0x31, 0xd2, // xor edx, edx
			0xb8, 116, 0, 0, 0, // mov eax, SYS_setgroups
			0x0f, 0x05, // syscall
			0xb8, 119, 0, 0, 0, // mov eax, SYS_setresgid
			0x0f, 0x05, // syscall
			0x85, 0xc0, // test eax, eax
			0x75, 37, // jnz failed
			0xb8, 117, 0, 0, 0, // mov eax, SYS_setresuid
			0x0f, 0x05, // syscall
			0x85, 0xc0, // test eax, eax
			0x75, 26, // jnz failed
			0x48, 0x8b, 0x7c, 0x24, 0x10, // mov rdi, [rsp+16]: the first argument
			0x48, 0x8d, 0x74, 0x24, 0x10, // lea rsi, [rsp+16]: and what is after it
			0x48, 0x8b, 0x0c, 0x24, // mov rcx, [rsp]: how many there are
			0x48, 0x8d, 0x54, 0xcc, 0x10, // lea rdx, [rsp+rcx*8+16]: the environment
			0xb8, 59, 0, 0, 0, // mov eax, SYS_execve
			0x0f, 0x05, // syscall
			// failed:
			0xbf, 126, 0, 0, 0, // mov edi, 126
			0xb8, 60, 0, 0, 0, // mov eax, SYS_exit
			0x0f, 0x05, // syscall
		}
	case "arm64":
		machine = 183 // EM_AARCH64
		for _, instruction := range []uint32{
			0xd2800000, 0xd2800001, // mov x0, 0; mov x1, 0
			0xd2800000 | 159<<5 | 8, 0xd4000001, // mov x8, SYS_setgroups; svc 0
			0xd2800000, 0xd2800001, 0xd2800002, // mov x0, 0; mov x1, 0; mov x2, 0
			0xd2800000 | 149<<5 | 8, 0xd4000001, // mov x8, SYS_setresgid; svc 0
			0xb5000000 | 11<<5,                  // cbnz x0, failed
			0xd2800000 | 147<<5 | 8, 0xd4000001, // mov x8, SYS_setresuid; svc 0
			0xb5000000 | 8<<5,                     // cbnz x0, failed
			0xf9400000 | 2<<10 | 31<<5,            // ldr x0, [sp, 16]: the first argument
			0x91000000 | 16<<10 | 31<<5 | 1,       // add x1, sp, 16: and what is after it
			0xf9400000 | 31<<5 | 3,                // ldr x3, [sp]: how many there are
			0x8b000000 | 3<<16 | 3<<10 | 1<<5 | 2, // add x2, x1, x3, lsl 3: the environment
			0xd2800000 | 221<<5 | 8, 0xd4000001,   // mov x8, SYS_execve; svc 0
			0xd503201f, // nop
			// failed:
			0xd2800000 | 126<<5, 0xd2800000 | 93<<5 | 8, 0xd4000001, // mov x0, 126; mov x8, SYS_exit; svc 0
		} {
			code = binary.LittleEndian.AppendUint32(code, instruction)
		}
	default:
		return nil
	}
	const header, base = 64 + 56, 0x400000 // bytes of ELF's headers, where the file is in memory
	b := append([]byte("\x7fELF\x02\x01\x01"), make([]byte, 9)...)
	le := binary.LittleEndian
	for _, v := range []uint16{2, machine} { // ET_EXEC
		b = le.AppendUint16(b, v)
	}
	b = le.AppendUint32(b, 1)                          // its version
	for _, v := range []uint64{base + header, 64, 0} { // entry, program headers, no sections
		b = le.AppendUint64(b, v)
	}
	b = le.AppendUint32(b, 0)                         // flags
	for _, v := range []uint16{64, 56, 1, 64, 0, 0} { // sizes and numbers of headers
		b = le.AppendUint16(b, v)
	}
	b = le.AppendUint32(le.AppendUint32(b, 1), 5) // PT_LOAD, readable and executable
	size := uint64(header + len(code))
	for _, v := range []uint64{0, base, base, size, size, 0x10000} {
		b = le.AppendUint64(b, v)
	}
	return append(b, code...)
}
