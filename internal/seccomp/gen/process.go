package main

import "slices"

// A variant is a filter that is generated: the usual one, or one of those for code in no namespaces of its own.
type variant struct {
	process bool
	tcp     bool // it may connect to a proxy
	shared  bool // its uid is that of others, outside the sandbox
}

// variants are all filters.
var variants = []variant{
	{},
	{process: true}, {process: true, tcp: true},
	{process: true, shared: true}, {process: true, tcp: true, shared: true},
}

// suffix tells the variants for code in no namespaces apart.
func (v variant) suffix() string {
	out := "-own"
	if v.shared {
		out = "-shared"
	}
	if v.tcp {
		out += "-tcp"
	}
	return out
}

func (v variant) name() string {
	if !v.process {
		return "filter"
	}
	return "process" + v.suffix()
}

// groups lists the filter's groups. A call in none of them is denied
// with EPERM when it is known, with ENOSYS when it is newer than the filter.
func (v variant) groups() []Group {
	usual := slices.Concat(allowed(), checked(), denied())
	if !v.process {
		return usual
	}
	own := v.outside()
	for i := range usual {
		usual[i].Calls = slices.DeleteFunc(usual[i].Calls, func(call string) bool {
			return slices.ContainsFunc(own, func(g Group) bool { return slices.Contains(g.Calls, call) })
		})
	}
	return append(slices.DeleteFunc(usual, func(g Group) bool { return len(g.Calls) == 0 }), own...)
}

// outside are the groups that differ from the usual ones where the code sees the processes, sockets and files of others.
// Landlock keeps it from most of them; these are what Landlock does not know.
func (v variant) outside() []Group {
	out := []Group{
		{"ipc of others", Missing, "System V and POSIX queues and shared memory are those of everyone here: as in a kernel built without them", calls(`
		shmget shmat shmctl shmdt semget semop semctl semtimedop msgget msgsnd msgrcv msgctl
		mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr`)},
		{"watches", Missing, "they tell what happens to any file that has a name, also where Landlock denies to open it", calls(`
		inotify_init inotify_init1 inotify_add_watch inotify_rm_watch`)},
		{"servers", Deny, "Landlock denies to bind a port, but listening without it takes one too; and names of unix sockets are everyone's", calls(`bind listen`)},
		{"pairs", Check, "unix streams only, and sequences of packets: one of datagrams can be sent to any other socket", calls(`socketpair`)},
		{"requests", Check, "those about terminals, sockets and devices, and those that only ask about a file: file systems have others that change it, or make and remove directories, by a descriptor for reading. ENOTTY, as any file gives that does not know a request", calls(`ioctl`)},
		{"descriptors", Check, "what concerns the descriptor, and locks; no leases or notices, which hold up or tell what others do", calls(`fcntl`)},
		{"rlimit", Check, "as usual, and not RLIMIT_LOCKS, whose value marks the processes of a sandbox", calls(`setrlimit prlimit64`)},
	}
	if v.tcp {
		out = append(out,
			Group{"tcp", Check, "TCP sockets only: Landlock does not know the others", calls(`socket`)},
			Group{"connecting by sending", Check, "no MSG_FASTOPEN: no one asks Landlock about its address", calls(`sendto sendmsg sendmmsg`)},
			Group{"socket options", Check, "no TCP_ULP: one of them makes of it a socket that Landlock does not take for TCP", calls(`setsockopt`)})
	} else {
		out = append(out, Group{"no sockets", NoFamily, "as in a kernel without any family: programs take it for a host without a network, and go on", calls(`socket`)})
	}
	if v.shared {
		out = append(out,
			Group{"attributes", Unsupported, "of files of the same user anywhere; as a file system without them", calls(`
			setxattr lsetxattr fsetxattr removexattr lremovexattr fremovexattr`)},
			Group{"new ways to open", Missing, "these keep in memory what a filter must see; what knows them falls back", calls(`openat2 setxattrat removexattrat`)},
			Group{"making files", Check, "not set-id, with which others would become this user; no devices", calls(`open openat creat mknod mknodat`)},
			Group{"affinity", Check, "of the calling thread; for another nothing is done and 0 returned: a C library that sets it for a thread which it has just made gives the thread up otherwise", calls(`sched_setaffinity`)},
			Group{"scheduling", Check, "of the calling thread, not of the same user's others", calls(`
			sched_setscheduler sched_setparam sched_setattr setpriority ioprio_set`)})
	}
	return out
}

// check is the program that decides on a call.
func (v variant) check(call string) block {
	if v.process {
		if b := v.checkOutside(call); b != nil {
			return b
		}
	}
	return check(call)
}

// checkOutside decides on the calls of outside; it is nil for others.
func (v variant) checkOutside(call string) block {
	deny := errno(ePERM)
	switch call {
	case "socketpair":
		pair := oneOf(masked(1, sockTypeMask), []uint32{sockStream, sockSeqpacket}, allow(), errno(ePROTONOSUPPORT))
		return cond(arg(0), jmpEQ, afUnix, pair, deny)
	case "ioctl":
		known := oneOf(arg(1), fileRequests, allow(), oneOf(masked(1, 0xff00), requestTypes, allow(), errno(eNOTTY)))
		return oneOf(arg(1), ttyRequests, deny, known)
	case "fcntl":
		return oneOf(arg(1), fcntlCommands, allow(), errno(eINVAL))
	case "setrlimit":
		return oneOf(arg(0), []uint32{rlimitCore, rlimitLocks}, deny, allow())
	case "prlimit64":
		return checkPrlimit(rlimitCore, rlimitLocks)
	case "socket":
		tcp := cond(masked(1, sockTypeMask), jmpEQ, sockStream, oneOf(arg(2), []uint32{0, ipTCP}, allow(), deny), deny)
		return oneOf(arg(0), []uint32{afInet, afInet6}, tcp, errno(eAFNOSUPPORT))
	case "sendmsg":
		return cond(arg(2), jmpSet, msgFastOpen, errno(eOPNOTSUPP), allow())
	case "sendto", "sendmmsg":
		return cond(arg(3), jmpSet, msgFastOpen, errno(eOPNOTSUPP), allow())
	case "setsockopt":
		return cond(arg(1), jmpEQ, ipTCP, cond(arg(2), jmpEQ, tcpULP, errno(eNOPROTOOPT), allow()), allow())
	}
	if !v.shared {
		return nil
	}
	switch call {
	case "open":
		return checkOpen(1)
	case "openat":
		return checkOpen(2)
	case "creat":
		return none(1, setIDs)
	case "mknod":
		return cond(arg(1), jmpSet, setIDs, deny, checkDevice(1))
	case "mknodat":
		return cond(arg(2), jmpSet, setIDs, deny, checkDevice(2))
	case "sched_setaffinity":
		return cond(arg(0), jmpEQ, 0, allow(), errno(0))
	case "sched_setscheduler", "sched_setparam", "sched_setattr":
		return cond(arg(0), jmpEQ, 0, allow(), deny)
	case "setpriority":
		return oneself(0) // PRIO_PROCESS
	case "ioprio_set":
		return oneself(1) // IOPRIO_WHO_PROCESS
	}
	return nil
}

// oneself allows a call whose first argument is the kind of its second, when it is about the calling thread.
func oneself(kind uint32) block {
	deny := errno(ePERM)
	return cond(arg(0), jmpEQ, kind, cond(arg(1), jmpEQ, 0, allow(), deny), deny)
}

const setIDs = 0o6000 // S_ISUID, S_ISGID

// checkOpen denies to make a file that is set-id. The mode, which follows the n-th argument, has a meaning only
// where a file is made.
func checkOpen(n uint32) block {
	const makes = 0x40 | 0x400000 // O_CREAT, __O_TMPFILE
	return cond(arg(n), jmpSet, makes, none(n+1, setIDs), allow())
}

const (
	rlimitLocks = 10
	msgFastOpen = 0x20000000
	tcpULP      = 31
)

// Requests of files that change nothing but a file open for writing: FIGETBSZ is among requestTypes.
var fileRequests = []uint32{
	0x40049409, 0x4020940d, // FICLONE, FICLONERANGE
	0x80086601, 0x80046601, // FS_IOC_GETFLAGS and its form of 32 bits
	0x801c581f, 0xc020660b, // FS_IOC_FSGETXATTR, FS_IOC_FIEMAP
}

// The types of requests: terminals and descriptors, sockets, and those of devices, which Landlock decides on: of
// GPUs 0 (with which FIGETBSZ and FIBMAP are, that changes nothing either), 'F', 'K' and 'd'.
var requestTypes = []uint32{'T' << 8, 0x89 << 8, 0, 'F' << 8, 'K' << 8, 'd' << 8}

var fcntlCommands = []uint32{
	0, 1030, 1027, 1028, // F_DUPFD, F_DUPFD_CLOEXEC, F_DUPFD_QUERY, F_CREATED_QUERY
	1, 2, 3, 4, // F_GETFD, F_SETFD, F_GETFL, F_SETFL
	5, 6, 7, 36, 37, 38, 1029, // F_GETLK, F_SETLK, F_SETLKW, the same of F_OFD_*, F_CANCELLK
	8, 9, 15, 16, 17, 10, 11, // F_SETOWN, F_GETOWN, the same of F_*_EX, F_GETOWNER_UIDS, F_SETSIG, F_GETSIG
	1031, 1032, 1033, 1034, // F_SETPIPE_SZ, F_GETPIPE_SZ, F_ADD_SEALS, F_GET_SEALS
	1025, 1035, 1037, // F_GETLEASE, F_GET_RW_HINT, F_GET_FILE_RW_HINT
}

// notified are the calls that a process outside answers: what it must not decide on by memory that the code can change.
func (v variant) notified() []string {
	var out []string
	if v.shared {
		out = calls(`chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat utime utimes futimesat utimensat`)
	}
	if v.tcp {
		out = append(out, "connect")
	}
	return out
}

// assembleNotify makes the program that has these calls answered outside and lets all others through, as it does with
// those of another entry: the filter that is loaded after it denies these.
func (v variant) assembleNotify(a abi) block {
	var numbers []uint32
	for _, call := range v.notified() {
		if nr, ok := a.numbers[call]; ok {
			numbers = append(numbers, nr)
		}
	}
	notify := block{{code: opRet, k: retNotify}}
	return cond(load(offArch), jmpEQ, a.audit, oneOf(load(offNumber), numbers, notify, allow()), allow())
}
