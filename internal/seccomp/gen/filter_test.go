package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/llmsandbox/llmsandbox/internal/seccomp"
)

const (
	vAllow      = uint32(retAllow)
	vEPERM      = uint32(retErrno | ePERM)
	vENOSYS     = uint32(retErrno | eNOSYS)
	vNoProtocol = uint32(retErrno | ePROTONOSUPPORT)
	vNoFamily   = uint32(retErrno | eAFNOSUPPORT)

	vUnsupported = uint32(retErrno | eOPNOTSUPP)
)

func mustABI(t testing.TB, arch string) abi {
	t.Helper()
	a, err := abiOf(arch)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestVerdicts(t *testing.T) {
	const high = 0xdead << 32 // what the kernel drops must not matter
	cases := []struct {
		call string
		args []uint64
		want uint32
	}{
		{"read", nil, vAllow},
		{"execve", nil, vAllow},
		{"clone3", nil, vENOSYS},
		{"vmsplice", nil, vENOSYS},
		{"ptrace", nil, vEPERM},
		{"io_uring_setup", nil, vEPERM},
		{"add_key", nil, vEPERM},
		{"statmount", nil, vEPERM},

		{"clone", []uint64{0x3d0f00}, vAllow}, // a thread of glibc
		{"clone", []uint64{17}, vAllow},       // fork: SIGCHLD
		{"clone", []uint64{0x80 | 17}, vAllow},
		{"clone", []uint64{0x10000000 | 17}, vEPERM},
		{"clone", []uint64{0x00020000}, vEPERM},
		{"clone", []uint64{high | 0x40000000}, vEPERM},
		{"unshare", []uint64{0x400}, vAllow}, // CLONE_FILES
		{"unshare", []uint64{0x80}, vEPERM},  // CLONE_NEWTIME

		{"setrlimit", []uint64{7, 0x7ffe0000}, vAllow}, // RLIMIT_NOFILE
		{"setrlimit", []uint64{4, 0x7ffe0000}, vEPERM}, // RLIMIT_CORE
		{"setrlimit", []uint64{high | 4, 0x7ffe0000}, vEPERM},
		{"prlimit64", []uint64{0, 4, 0, 0x7ffe0000}, vAllow}, // only read
		{"prlimit64", []uint64{0, 4, 0x7ffe0000, 0}, vEPERM},
		{"prlimit64", []uint64{0, high | 4, 1 << 32, 0}, vEPERM},
		{"prlimit64", []uint64{0, 7, 0x7ffe0000, 0}, vAllow},
		{"prlimit64", []uint64{1, 7, 0, 0x7ffe0000}, vAllow}, // another's: only read
		{"prlimit64", []uint64{1, 0, 0x7ffe0000, 0}, vEPERM},
		{"prlimit64", []uint64{1, 7, 1 << 32, 0}, vEPERM},
		{"prlimit64", []uint64{high, 7, 0x7ffe0000, 0}, vAllow}, // the kernel takes it for 0
		{"unshare", []uint64{0x02000000}, vEPERM},

		{"socket", []uint64{1, 1}, vAllow},
		{"socket", []uint64{1, 5 | 0x80000}, vAllow},
		{"socket", []uint64{1, 3}, vEPERM},
		{"socket", []uint64{2, 1 | 0x800}, vAllow},
		{"socket", []uint64{2, 1, 6}, vAllow},
		{"socket", []uint64{2, 2, 17}, vAllow},
		{"socket", []uint64{10, 2, 0}, vAllow},
		{"socket", []uint64{2, 2, 1}, vEPERM},   // ICMP
		{"socket", []uint64{2, 1, 262}, vEPERM}, // multipath TCP
		{"socket", []uint64{2, 1, 132}, vEPERM}, // SCTP
		{"socket", []uint64{2, 3, 1}, vEPERM},   // raw
		{"socket", []uint64{high | 2, high | 3, high | 1}, vEPERM},
		{"socket", []uint64{high | 2, high | 1, high}, vAllow},
		{"socket", []uint64{2, 10, 3}, vEPERM},       // SOCK_PACKET
		{"socket", []uint64{16, 3, 0}, vAllow},       // NETLINK_ROUTE
		{"socket", []uint64{16, 3, 12}, vNoProtocol}, // NETLINK_NETFILTER
		{"socket", []uint64{17, 3}, vEPERM},          // packet
		{"socket", []uint64{38, 5}, vEPERM},          // alg
		{"socket", []uint64{40, 1}, vEPERM},          // vsock
		{"socket", []uint64{44, 3}, vEPERM},          // xdp
		{"socket", []uint64{0xffffffff, 1}, vEPERM},
		{"socketpair", []uint64{1, 1}, vAllow},
		{"socketpair", []uint64{30, 1}, vEPERM}, // tipc

		{"ioctl", []uint64{0, 0x5401}, vAllow}, // TCGETS
		{"ioctl", []uint64{0, 0x5412}, vEPERM},
		{"ioctl", []uint64{0, high | 0x5412}, vEPERM},
		{"ioctl", []uint64{0, 0x541c}, vEPERM},
		{"ioctl", []uint64{0, 0x5423}, vEPERM},

		{"prctl", []uint64{15}, vAllow},
		{"prctl", []uint64{0x53564d41}, vAllow},
		{"prctl", []uint64{35}, vEPERM}, // PR_SET_MM
		{"prctl", []uint64{high | 35}, vEPERM},
		{"prctl", []uint64{0x59616d61}, vEPERM}, // PR_SET_PTRACER

		{"personality", []uint64{0}, vAllow},
		{"personality", []uint64{0xffffffff}, vAllow},
		{"personality", []uint64{0x0040000}, vEPERM},
		{"personality", []uint64{8}, vEPERM},

		{"mknodat", []uint64{0, 0, 0x1000 | 0o644}, vAllow},
		{"mknodat", []uint64{0, 0, 0o644}, vAllow},
		{"mknodat", []uint64{0, 0, 0xc000}, vAllow},
		{"mknodat", []uint64{0, 0, 0x2000 | 0o666}, vEPERM},
		{"mknodat", []uint64{0, 0, 0x6000 | 0o666}, vEPERM},
		{"mknodat", []uint64{0, 0, high | 0xabcd0000 | 0x6000}, vEPERM},
		{"mknod", []uint64{0, 0x2000}, vEPERM},
	}
	for arch := range abis {
		a := mustABI(t, arch)
		prog := assemble(a, variant{})
		for _, c := range cases {
			nr, ok := a.numbers[c.call]
			if !ok {
				continue // arm64 has no mknod
			}
			d := data{nr: nr, arch: a.audit}
			copy(d.args[:], c.args)
			if got, _ := run(t, prog, d); got != c.want {
				t.Errorf("%s: %s(%#x) = %#x, want %#x", arch, c.call, c.args, got, c.want)
			}
		}
	}
}

func TestOtherEntries(t *testing.T) {
	amd64, arm64 := assemble(mustABI(t, "amd64"), variant{}), assemble(mustABI(t, "arm64"), variant{})
	cases := []struct {
		what string
		prog block
		d    data
		want uint32
	}{
		{"i386 entry", amd64, data{nr: 3, arch: 0x40000003}, vEPERM},
		{"x32 read", amd64, data{nr: 0x40000000, arch: 0xc000003e}, vEPERM},
		{"x32 execve", amd64, data{nr: 0x40000000 | 520, arch: 0xc000003e}, vEPERM},
		{"number -1", amd64, data{nr: 0xffffffff, arch: 0xc000003e}, vEPERM},
		{"a newer call", amd64, data{nr: 900, arch: 0xc000003e}, vENOSYS},
		{"a hole", amd64, data{nr: 400, arch: 0xc000003e}, vENOSYS},
		{"arm entry", arm64, data{nr: 3, arch: 0x40000028}, vEPERM},
		{"a newer call on arm64", arm64, data{nr: 900, arch: 0xc00000b7}, vENOSYS},
		{"amd64 on arm64", arm64, data{nr: 0, arch: 0xc000003e}, vEPERM},
	}
	for _, c := range cases {
		if got, _ := run(t, c.prog, c.d); got != c.want {
			t.Errorf("%s = %#x, want %#x", c.what, got, c.want)
		}
	}
}

// neverAllowed is written down apart from the groups, so that a slip there shows.
var neverAllowed = strings.Fields(`
	ptrace process_vm_readv process_vm_writev pidfd_getfd kcmp process_madvise move_pages migrate_pages
	setns mount umount2 pivot_root chroot open_tree open_tree_attr move_mount fsopen fsconfig fsmount fspick mount_setattr
	clone3 io_uring_setup io_uring_enter io_uring_register bpf perf_event_open userfaultfd
	add_key request_key keyctl name_to_handle_at open_by_handle_at fanotify_init lookup_dcookie
	reboot kexec_load kexec_file_load init_module finit_module delete_module swapon swapoff syslog acct quotactl
	quotactl_fd clock_settime clock_adjtime adjtimex settimeofday sethostname setdomainname iopl ioperm modify_ldt`)

// neverOutside are further ones for code in no namespaces of its own, and neverShared for that of a shared uid.
var (
	neverOutside = strings.Fields(`
	shmget shmat shmctl semget semop semctl msgget msgsnd msgrcv msgctl mq_open mq_unlink mq_timedsend mq_notify
	inotify_init inotify_init1 inotify_add_watch bind listen file_getattr file_setattr`)
	neverShared = strings.Fields(`openat2 setxattr lsetxattr fsetxattr removexattr lremovexattr fremovexattr setxattrat removexattrat`)
)

func TestNeverAllowed(t *testing.T) {
	for _, v := range variants {
		t.Run(v.name(), func(t *testing.T) { neverAllows(t, v) })
	}
}

func neverAllows(t *testing.T, v variant) {
	errnos := []uint32{ePERM, eNOSYS}
	never := neverAllowed
	if v.process {
		never = slices.Concat(never, neverOutside)
		errnos = append(errnos, eINVAL, eNOTTY, eNOPROTOOPT, ePROTONOSUPPORT, eOPNOTSUPP, eAFNOSUPPORT)
		if !v.tcp {
			never = append(never, "socket")
		}
	}
	if v.shared {
		never = append(never, neverShared...)
	}
	for arch := range abis {
		a := mustABI(t, arch)
		prog := assemble(a, v)
		denied := map[uint32]bool{}
		for _, name := range never {
			if nr, ok := a.numbers[name]; ok {
				denied[nr] = true
			}
		}
		named := map[uint32]bool{}
		for _, g := range v.groups() {
			for _, c := range g.Calls {
				if nr, ok := a.numbers[c]; ok && (g.Verdict == Allow || g.Verdict == Check) {
					named[nr] = true
				}
			}
		}
		nothing, hasNothing := a.numbers["sched_setaffinity"] // is answered with 0 and not done
		rapid.Check(t, func(rt *rapid.T) {
			d := data{arch: a.audit}
			d.nr = rapid.OneOf(rapid.Uint32Range(0, 600), rapid.Uint32()).Draw(rt, "nr")
			if rapid.IntRange(0, 9).Draw(rt, "entry") == 0 {
				d.arch = rapid.Uint32().Draw(rt, "arch")
			}
			for i := range d.args {
				d.args[i] = rapid.Uint64().Draw(rt, "arg")
			}
			got, steps := run(t, prog, d)
			refused := got&0xffff0000 == retErrno && slices.Contains(errnos, got&0xffff)
			if got != vAllow && !refused && !(got == retErrno && v.shared && hasNothing && d.nr == nothing) {
				rt.Fatalf("%s: verdict %#x of %+v", arch, got, d)
			}
			if got == vAllow && (denied[d.nr] || !named[d.nr] || d.arch != a.audit) {
				rt.Fatalf("%s: %+v is allowed", arch, d)
			}
			if steps > 60 {
				rt.Fatalf("%s: %d instructions for %+v", arch, steps, d)
			}
		})
		for nr := range denied {
			if got, _ := run(t, prog, data{nr: nr, arch: a.audit}); got == vAllow {
				t.Errorf("%s: call %d is allowed, want got != %v", arch, nr, vAllow)
			}
		}
	}
}

// Every verdict of the table is reached: what the groups say is what the program does.
func TestProgramMatchesGroups(t *testing.T) {
	for _, v := range variants {
		t.Run(v.name(), func(t *testing.T) { matchesGroups(t, v) })
	}
}

func matchesGroups(t *testing.T, v variant) {
	amd64 := mustABI(t, "amd64")
	for arch := range abis {
		a := mustABI(t, arch)
		prog := assemble(a, v)
		seen := map[string]string{}
		for _, g := range v.groups() {
			if g.Name == "" || g.Why == "" || len(g.Calls) == 0 {
				t.Errorf("group %+v lacks something, want Name not empty, Why not empty, Calls not empty", g)
			}
			for _, c := range g.Calls {
				if other, dup := seen[c]; dup {
					t.Errorf("%s is in %q and in %q, want it in one", c, other, g.Name)
				}
				seen[c] = g.Name
				if _, ok := amd64.numbers[c]; !ok {
					t.Errorf("%q in %q is no system call, want one", c, g.Name)
				}
				if g.Verdict == Check && len(v.check(c)) == 1 {
					t.Errorf("%s has no check, want Verdict != Check or len(check(c)) != 1", c)
				}
				nr, ok := a.numbers[c]
				if !ok {
					continue
				}
				want := map[Verdict]uint32{Allow: vAllow, Deny: vEPERM, Missing: vENOSYS, NoFamily: vNoFamily, Unsupported: vUnsupported}
				if w, ok := want[g.Verdict]; ok {
					if got, _ := run(t, prog, data{nr: nr, arch: a.audit}); got != w {
						t.Errorf("%s: %s = %#x, want %s", arch, c, got, g.Verdict)
					}
				}
			}
		}
		for name, nr := range a.numbers {
			if seen[name] == "" {
				if got, _ := run(t, prog, data{nr: nr, arch: a.audit}); got != vEPERM {
					t.Errorf("%s: %s is in no group and gives %#x, want %#x", arch, name, got, vEPERM)
				}
			}
		}
	}
}

// A process filter allows nothing that the usual one does not.
func TestProcessIsStricter(t *testing.T) {
	for arch := range abis {
		a := mustABI(t, arch)
		usual := assemble(a, variant{})
		for _, v := range variants {
			prog := assemble(a, v)
			rapid.Check(t, func(rt *rapid.T) {
				d := data{arch: a.audit, nr: rapid.Uint32Range(0, 600).Draw(rt, "nr")}
				for i := range d.args {
					d.args[i] = rapid.OneOf(rapid.Uint64Range(0, 64), rapid.Uint64()).Draw(rt, "arg")
				}
				got, _ := run(t, prog, d)
				if want, _ := run(t, usual, d); got == vAllow && want != vAllow {
					rt.Fatalf("%s, %s: %+v is allowed, and %#x usually", v.name(), arch, d, want)
				}
			})
		}
	}
}

// The filters are what the generator writes.
func TestFilter(t *testing.T) {
	for arch := range abis {
		files, err := programs(arch)
		if err != nil {
			t.Fatal(err)
		}
		a := mustABI(t, arch)
		for _, v := range variants {
			o := seccomp.ProcessOptions{TCP: v.tcp, Shared: v.shared}
			prog, get := assemble(a, v), func() ([]byte, error) { return seccomp.Process(arch, o) }
			if !v.process {
				get = func() ([]byte, error) { return seccomp.Filter(arch) }
			}
			isProgram(t, files[v.name()+"_"+arch+".bpf"], prog, get)
			t.Logf("%s, %s: %d instructions, %s", arch, v.name(), len(prog), depth(t, a, prog))
			switch notify, err := seccomp.Notify(arch, o); {
			case len(v.notified()) > 0:
				isProgram(t, files["notify"+v.suffix()+"_"+arch+".bpf"], v.assembleNotify(a), func() ([]byte, error) { return notify, err })
			case notify != nil || err != nil:
				t.Errorf("%s: %d bytes, %v for what needs no answers, want none", v.name(), len(notify), err)
			}
		}
	}
	if _, err := seccomp.Filter("riscv64"); !errors.Is(err, seccomp.ErrArch) {
		t.Fatalf("riscv64: %v, want ErrArch", err)
	}
}

func isProgram(t *testing.T, want []byte, prog block, get func() ([]byte, error)) {
	t.Helper()
	raw, err := get()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(raw, want) {
		t.Error("the file is not what the generator writes: run make generate")
	}
	if len(want) != len(prog)*8 {
		t.Fatalf("%d bytes for %d instructions, want 8 each", len(want), len(prog))
	}
	for n, i := range prog {
		b := want[n*8:]
		if binary.LittleEndian.Uint16(b) != i.code || b[2] != i.jt || b[3] != i.jf || binary.LittleEndian.Uint32(b[4:]) != i.k {
			t.Fatalf("instruction %d is %x, want %+v", n, b[:8], i)
		}
	}
}

func depth(t *testing.T, a abi, prog block) string {
	var steps []int
	for _, nr := range a.numbers {
		_, n := run(t, prog, data{nr: nr, arch: a.audit})
		steps = append(steps, n)
	}
	slices.Sort(steps)
	return fmt.Sprintf("median %d, worst %d run", steps[len(steps)/2], steps[len(steps)-1])
}
