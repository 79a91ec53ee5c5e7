package main

import "testing"

func TestProcessVerdicts(t *testing.T) {
	const high = 0xdead << 32
	const (
		vInvalid  = uint32(retErrno | eINVAL)
		vNoTTY    = uint32(retErrno | eNOTTY)
		vNoOption = uint32(retErrno | eNOPROTOOPT)
		vNothing  = uint32(retErrno) // done nothing, and said 0
		vNotify   = uint32(retNotify)
	)
	// What each of the variants gives: of its own uid and of a shared one; tcp is that of both with TCP, where it differs.
	cases := []struct {
		call        string
		args        []uint64
		own, shared uint32
		tcp         uint32
	}{
		{"read", nil, vAllow, vAllow, 0},
		{"ptrace", nil, vEPERM, vEPERM, 0},
		{"kill", []uint64{1, 9}, vAllow, vAllow, 0},
		{"shmget", nil, vENOSYS, vENOSYS, 0},
		{"inotify_init1", nil, vENOSYS, vENOSYS, 0},
		{"bind", nil, vEPERM, vEPERM, 0},
		{"listen", nil, vEPERM, vEPERM, 0},
		{"connect", nil, vAllow, vAllow, 0},

		{"socket", []uint64{1, 1}, vNoFamily, vNoFamily, 0},
		{"socket", []uint64{2, 1}, vNoFamily, vNoFamily, vAllow},
		{"socket", []uint64{2, 1 | 0x80800, 6}, vNoFamily, vNoFamily, vAllow},
		{"socket", []uint64{10, 1, 6}, vNoFamily, vNoFamily, vAllow},
		{"socket", []uint64{high | 10, high | 1, high | 6}, vNoFamily, vNoFamily, vAllow},
		{"socket", []uint64{2, 1, 262}, vNoFamily, vNoFamily, vEPERM}, // multipath TCP
		{"socket", []uint64{2, 1, 256}, vNoFamily, vNoFamily, vEPERM}, // SMC
		{"socket", []uint64{2, 2}, vNoFamily, vNoFamily, vEPERM},
		{"socket", []uint64{2, 3}, vNoFamily, vNoFamily, vEPERM},
		{"socket", []uint64{16, 3}, vNoFamily, vNoFamily, 0},
		{"socket", []uint64{17, 3}, vNoFamily, vNoFamily, 0},
		{"socket", []uint64{40, 1}, vNoFamily, vNoFamily, 0},
		{"socket", []uint64{43, 1}, vNoFamily, vNoFamily, 0}, // AF_SMC
		{"sendto", []uint64{3, 0, 0, 0x4000}, vAllow, vAllow, 0},
		{"sendto", []uint64{3, 0, 0, 0x20000000}, vAllow, vAllow, vUnsupported},
		{"sendto", []uint64{3, 0, 0, high | 0x20004000}, vAllow, vAllow, vUnsupported},
		{"sendmsg", []uint64{3, 0, 0x20000000}, vAllow, vAllow, vUnsupported},
		{"sendmmsg", []uint64{3, 0, 1, 0x20000000}, vAllow, vAllow, vUnsupported},
		{"setsockopt", []uint64{3, 6, 1}, vAllow, vAllow, 0},
		{"setsockopt", []uint64{3, 6, 31}, vAllow, vAllow, vNoOption},
		{"setsockopt", []uint64{3, 1, 31}, vAllow, vAllow, 0},

		{"socketpair", []uint64{1, 1 | 0x80000}, vAllow, vAllow, 0},
		{"socketpair", []uint64{1, 5}, vAllow, vAllow, 0},
		{"socketpair", []uint64{1, 2}, vNoProtocol, vNoProtocol, 0},
		{"socketpair", []uint64{1, 3}, vNoProtocol, vNoProtocol, 0}, // which the kernel takes for 2
		{"socketpair", []uint64{1, high | 2 | 0x800}, vNoProtocol, vNoProtocol, 0},
		{"socketpair", []uint64{30, 1}, vEPERM, vEPERM, 0},

		{"ioctl", []uint64{0, 0x5401}, vAllow, vAllow, 0},
		{"ioctl", []uint64{0, 0x541b}, vAllow, vAllow, 0}, // FIONREAD
		{"ioctl", []uint64{0, 0x5412}, vEPERM, vEPERM, 0},
		{"ioctl", []uint64{0, 2}, vAllow, vAllow, 0},          // FIGETBSZ
		{"ioctl", []uint64{0, 0x80086601}, vAllow, vAllow, 0}, // FS_IOC_GETFLAGS
		{"ioctl", []uint64{0, 0x40086602}, vNoTTY, vNoTTY, 0}, // FS_IOC_SETFLAGS
		{"ioctl", []uint64{0, high | 0x40086602}, vNoTTY, vNoTTY, 0},
		{"ioctl", []uint64{0, 0x40046602}, vNoTTY, vNoTTY, 0}, // its form of 32 bits
		{"ioctl", []uint64{0, 0x401c5820}, vNoTTY, vNoTTY, 0}, // FS_IOC_FSSETXATTR
		{"ioctl", []uint64{0, 0x40087602}, vNoTTY, vNoTTY, 0}, // FS_IOC_SETVERSION
		{"ioctl", []uint64{0, 0x40806685}, vNoTTY, vNoTTY, 0}, // FS_IOC_ENABLE_VERITY
		{"ioctl", []uint64{0, 0x5000940e}, vNoTTY, vNoTTY, 0}, // BTRFS_IOC_SUBVOL_CREATE
		{"ioctl", []uint64{0, 0xc0189436}, vNoTTY, vNoTTY, 0}, // FIDEDUPERANGE
		{"ioctl", []uint64{0, 0x40049409}, vAllow, vAllow, 0}, // FICLONE

		{"fcntl", []uint64{0, 1030}, vAllow, vAllow, 0},
		{"fcntl", []uint64{0, 38}, vAllow, vAllow, 0},
		{"fcntl", []uint64{0, 1024}, vInvalid, vInvalid, 0}, // F_SETLEASE
		{"fcntl", []uint64{0, high | 1024}, vInvalid, vInvalid, 0},
		{"fcntl", []uint64{0, 1026}, vInvalid, vInvalid, 0}, // F_NOTIFY

		{"setrlimit", []uint64{7, 1}, vAllow, vAllow, 0},
		{"setrlimit", []uint64{4, 1}, vEPERM, vEPERM, 0},
		{"setrlimit", []uint64{high | 10, 1}, vEPERM, vEPERM, 0}, // RLIMIT_LOCKS
		{"prlimit64", []uint64{0, 10, 1, 0}, vEPERM, vEPERM, 0},
		{"prlimit64", []uint64{0, 10, 0, 1}, vAllow, vAllow, 0},
		{"prlimit64", []uint64{0, 4, 1, 0}, vEPERM, vEPERM, 0},
		{"prlimit64", []uint64{0, 7, 1, 0}, vAllow, vAllow, 0},
		{"prlimit64", []uint64{9, 7, 1, 0}, vEPERM, vEPERM, 0},

		{"sched_setaffinity", []uint64{0}, vAllow, vAllow, 0},
		{"sched_setaffinity", []uint64{high}, vAllow, vAllow, 0},
		{"sched_setaffinity", []uint64{77}, vAllow, vNothing, 0},
		{"sched_setscheduler", []uint64{0}, vAllow, vAllow, 0},
		{"sched_setscheduler", []uint64{77}, vAllow, vEPERM, 0},
		{"sched_setparam", []uint64{77}, vAllow, vEPERM, 0},
		{"sched_setattr", []uint64{77}, vAllow, vEPERM, 0},
		{"setpriority", []uint64{0, 0, 5}, vAllow, vAllow, 0},
		{"setpriority", []uint64{0, 77, 5}, vAllow, vEPERM, 0},
		{"setpriority", []uint64{1, 0, 5}, vAllow, vEPERM, 0},
		{"setpriority", []uint64{2, 0, 5}, vAllow, vEPERM, 0},
		{"ioprio_set", []uint64{1, 0}, vAllow, vAllow, 0},
		{"ioprio_set", []uint64{1, 77}, vAllow, vEPERM, 0},
		{"ioprio_set", []uint64{2, 0}, vAllow, vEPERM, 0},
		{"ioprio_set", []uint64{3, 0}, vAllow, vEPERM, 0},

		{"fchmodat", nil, vAllow, vAllow, 0},
		{"setxattr", nil, vAllow, vUnsupported, 0},
		{"fremovexattr", nil, vAllow, vUnsupported, 0},
		{"getxattr", nil, vAllow, vAllow, 0},
		{"openat2", nil, vAllow, vENOSYS, 0},
		{"open", []uint64{0, 0, 0o4755}, vAllow, vAllow, 0}, // no file is made: what is there has no meaning
		{"open", []uint64{0, 0x41, 0o4755}, vAllow, vEPERM, 0},
		{"openat", []uint64{0, 0, 0x41, 0o644}, vAllow, vAllow, 0},
		{"openat", []uint64{0, 0, 0x41, 0o4755}, vAllow, vEPERM, 0},
		{"openat", []uint64{0, 0, 0x41, 0o2755}, vAllow, vEPERM, 0},
		{"openat", []uint64{0, 0, high | 0x410001, high | 0o4755}, vAllow, vEPERM, 0}, // O_TMPFILE
		{"creat", []uint64{0, 0o4755}, vAllow, vEPERM, 0},
		{"creat", []uint64{0, 0o644}, vAllow, vAllow, 0},
		{"mknodat", []uint64{0, 0, 0x8000 | 0o4755}, vAllow, vEPERM, 0},
		{"mknodat", []uint64{0, 0, 0x1000 | 0o644}, vAllow, vAllow, 0},
		{"mknodat", []uint64{0, 0, 0x2000 | 0o644}, vEPERM, vEPERM, 0},
	}
	for arch := range abis {
		a := mustABI(t, arch)
		for _, v := range variants[1:] {
			prog := assemble(a, v)
			for _, c := range cases {
				nr, ok := a.numbers[c.call]
				if !ok {
					continue // arm64 has no open
				}
				want := c.own
				if v.shared {
					want = c.shared
				}
				if v.tcp && c.tcp != 0 {
					want = c.tcp
				}
				d := data{nr: nr, arch: a.audit}
				copy(d.args[:], c.args)
				if got, _ := run(t, prog, d); got != want {
					t.Errorf("%s, %s: %s(%#x) = %#x, want %#x", arch, v.name(), c.call, c.args, got, want)
				}
			}
		}
		// What is answered outside is allowed by the filter beside it, whose verdict would else hold.
		for _, v := range variants[1:] {
			prog, notify := assemble(a, v), v.assembleNotify(a)
			answered := map[uint32]bool{}
			for _, call := range v.notified() {
				if nr, ok := a.numbers[call]; ok {
					answered[nr] = true
				}
			}
			for nr := range uint32(600) {
				d := data{nr: nr, arch: a.audit}
				want := vAllow
				if answered[nr] {
					want = vNotify
					if got, _ := run(t, prog, d); got != vAllow {
						t.Errorf("%s, %s: call %d is answered outside and %#x in the filter, want it allowed", arch, v.name(), nr, got)
					}
				}
				if got, _ := run(t, notify, d); got != want {
					t.Errorf("%s, %s: call %d gives %#x, want %#x", arch, v.name(), nr, got, want)
				}
			}
			if got, _ := run(t, notify, data{nr: a.numbers["fchmodat"], arch: 0x40000003}); got != vAllow {
				t.Errorf("%s: a call of another entry gives %#x, want it allowed", arch, got)
			}
		}
	}
}
