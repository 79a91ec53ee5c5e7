package main

// checked are the calls whose arguments decide; [check] has the programs.
func checked() []Group {
	return []Group{
		{"clone", Check, "processes and threads, but no new namespaces", calls(`clone unshare`)},
		{"socket", Check, "unix sockets, TCP and UDP, and NETLINK_ROUTE, with which libraries list the interfaces; no raw, packet, vsock, alg or other families, whose kernel code is rarely used and often broken", calls(`socket`)},
		{"socketpair", Check, "unix only", calls(`socketpair`)},
		{"ioctl", Check, "all but those that type into a terminal (TIOCSTI, TIOCLINUX), take the console (TIOCCONS) or load a line discipline (TIOCSETD)", calls(`ioctl`)},
		{"prctl", Check, "the options that concern the caller alone; not PR_SET_MM, which rewrites its memory layout, nor any unknown one", calls(`prctl`)},
		{"personality", Check, "asking for it and the ordinary one; others turn off address randomisation or revive old semantics", calls(`personality`)},
		{"rlimit", Check, "all limits of its own but that of core files: it is 1, with which no crash is handed to a handler of the host's, and the code must not change it; of others it can only be read, since over its CPU time the kernel kills even the first process, the agent", calls(`setrlimit prlimit64`)},
		{"mknod", Check, "files, FIFOs and sockets, no devices", calls(`mknod mknodat`)},
	}
}

// check is the program that decides on a call of these.
func check(call string) block {
	switch call {
	case "clone":
		return none(0, cloneNew)
	case "unshare":
		return none(0, cloneNew|cloneNewTime)
	case "socket":
		return checkSocket()
	case "socketpair":
		return oneOf(arg(0), []uint32{afUnix}, allow(), errno(ePERM))
	case "ioctl":
		return oneOf(arg(1), ttyRequests, errno(ePERM), allow())
	case "prctl":
		return oneOf(arg(0), prctlOptions, allow(), errno(ePERM))
	case "personality":
		return oneOf(arg(0), []uint32{0, 0xffffffff}, allow(), errno(ePERM))
	case "setrlimit":
		return cond(arg(0), jmpEQ, rlimitCore, errno(ePERM), allow())
	case "prlimit64":
		return checkPrlimit(rlimitCore)
	case "mknod":
		return checkDevice(1)
	case "mknodat":
		return checkDevice(2)
	}
	return errno(ePERM) // a check that was forgotten denies; a test finds it
}

// The CLONE_NEW* flags: mount, cgroup, UTS, IPC, user, PID, network. The one for
// time shares its bit with clone's exit signal and is known to unshare only.
const (
	cloneNew     = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000
	cloneNewTime = 0x00000080
)

// Requests that reach beyond the caller: TIOCSTI, TIOCLINUX, TIOCCONS, TIOCSETD.
var ttyRequests = []uint32{0x5412, 0x541c, 0x541d, 0x5423}

var prctlOptions = []uint32{
	15, 16, // PR_SET_NAME, PR_GET_NAME
	0x53564d41, // PR_SET_VMA: names of memory areas
	1, 2,       // PR_SET_PDEATHSIG, PR_GET_PDEATHSIG
	3, 4, // PR_GET_DUMPABLE, PR_SET_DUMPABLE
	7, 8, // PR_GET_KEEPCAPS, PR_SET_KEEPCAPS
	21, 22, // PR_GET_SECCOMP, PR_SET_SECCOMP: only ever stricter
	23, 24, // PR_CAPBSET_READ, PR_CAPBSET_DROP
	27, 28, // PR_GET_SECUREBITS, PR_SET_SECUREBITS
	29, 30, // PR_SET_TIMERSLACK, PR_GET_TIMERSLACK
	36, 37, // PR_SET_CHILD_SUBREAPER, PR_GET_CHILD_SUBREAPER
	38, 39, // PR_SET_NO_NEW_PRIVS, PR_GET_NO_NEW_PRIVS
	40,     // PR_GET_TID_ADDRESS
	41, 42, // PR_SET_THP_DISABLE, PR_GET_THP_DISABLE
	47,     // PR_CAP_AMBIENT
	50, 51, // PR_SVE_SET_VL, PR_SVE_GET_VL
	52, 53, // PR_GET_SPECULATION_CTRL, PR_SET_SPECULATION_CTRL
	54, 55, 56, // PR_PAC_RESET_KEYS, PR_SET_TAGGED_ADDR_CTRL, PR_GET_TAGGED_ADDR_CTRL
	60, 61, // PR_PAC_SET_ENABLED_KEYS, PR_PAC_GET_ENABLED_KEYS
	63, 64, // PR_SME_SET_VL, PR_SME_GET_VL
	65, 66, // PR_SET_MDWE, PR_GET_MDWE
	0x41555856, // PR_GET_AUXV
}

// none denies the call when any of the bits is set in the argument.
func none(n, bits uint32) block { return cond(arg(n), jmpSet, bits, errno(ePERM), allow()) }

// Socket families, types and protocols.
const (
	afUnix, afInet, afNetlink, afInet6 = 1, 2, 16, 10

	sockStream, sockDgram, sockRaw, sockSeqpacket = 1, 2, 3, 5
	sockTypeMask                                  = 0xf // below SOCK_NONBLOCK and SOCK_CLOEXEC

	ipTCP, ipUDP = 6, 17
)

// checkSocket allows a family's usual types with their usual protocol (0 is the
// default one). Multipath TCP is refused like any other; what asks for it (the
// Go library does) falls back to TCP.
func checkSocket() block {
	deny := errno(ePERM)
	protocol := func(values ...uint32) block { return oneOf(arg(2), values, allow(), deny) }
	kind := func(values []uint32, then block) block { return oneOf(masked(1, sockTypeMask), values, then, deny) }

	inet := cond(masked(1, sockTypeMask), jmpEQ, sockStream, protocol(0, ipTCP),
		cond(nil, jmpEQ, sockDgram, protocol(0, ipUDP), deny))
	unix := kind([]uint32{sockStream, sockDgram, sockSeqpacket}, protocol(0, afUnix))
	// 0 is NETLINK_ROUTE. Without another, as in a kernel that lacks it, useradd and others do without.
	netlink := kind([]uint32{sockRaw, sockDgram}, oneOf(arg(2), []uint32{0}, allow(), errno(ePROTONOSUPPORT)))

	return cond(arg(0), jmpEQ, afUnix, unix,
		cond(nil, jmpEQ, afInet, inet,
			cond(nil, jmpEQ, afInet6, inet,
				cond(nil, jmpEQ, afNetlink, netlink, deny))))
}

const rlimitCore = 4

// checkPrlimit denies to set these limits and those of another process, but not
// to read them: the new limit is a pointer, which is nil when both its halves are 0.
func checkPrlimit(fixed ...uint32) block {
	deny := errno(ePERM)
	read := cond(arg(2), jmpEQ, 0, cond(upper(2), jmpEQ, 0, allow(), deny), deny)
	return cond(arg(0), jmpEQ, 0, oneOf(arg(1), fixed, read, allow()), read)
}

// checkDevice denies to make block and character devices. The type of a file is
// one of the values below a mask, not a bit.
func checkDevice(n uint32) block {
	const formatMask, charDevice, blockDevice = 0xf000, 0x2000, 0x6000
	return oneOf(masked(n, formatMask), []uint32{charDevice, blockDevice}, errno(ePERM), allow())
}
