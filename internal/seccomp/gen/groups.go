package main

import "strings"

// A Verdict is what becomes of a group's calls.
type Verdict string

// The verdicts.
const (
	Allow   Verdict = "allow"
	Check   Verdict = "check" // allowed or EPERM by their arguments
	Deny    Verdict = "EPERM"
	Missing Verdict = "ENOSYS" // as if the kernel did not have them

	NoFamily    Verdict = "EAFNOSUPPORT"
	Unsupported Verdict = "EOPNOTSUPP"
)

// A Group is system calls that share a verdict and the reason for it.
type Group struct {
	Name    string
	Verdict Verdict
	Why     string
	Calls   []string
}

// of is the verdict's program for a call.
func (v Verdict) of(call string, f variant) span {
	switch v {
	case Allow:
		return span{name: "allow", block: allow()}
	case Check:
		return span{name: call, block: f.check(call)}
	case Missing:
		return span{name: "ENOSYS", block: errno(eNOSYS)}
	case NoFamily:
		return span{name: "EAFNOSUPPORT", block: errno(eAFNOSUPPORT)}
	case Unsupported:
		return span{name: "EOPNOTSUPP", block: errno(eOPNOTSUPP)}
	default: // denied, and what no group lists
		return span{name: "EPERM", block: errno(ePERM)}
	}
}

func calls(s string) []string { return strings.Fields(s) }

// allowed are the calls that any program may make, whatever their arguments.
func allowed() []Group {
	return []Group{
		{"files", Allow, "reading and writing files; the mounts, file modes and Landlock decide which", calls(`
		read write open openat openat2 creat close close_range lseek pread64 pwrite64 readv writev preadv pwritev
		preadv2 pwritev2 dup dup2 dup3 fcntl flock fsync fdatasync syncfs sync_file_range truncate ftruncate fallocate
		fadvise64 readahead sendfile copy_file_range splice tee pipe pipe2 access faccessat faccessat2
		stat fstat lstat newfstatat statx statfs fstatfs getdents getdents64 getcwd chdir fchdir
		rename renameat renameat2 mkdir mkdirat rmdir link linkat unlink unlinkat symlink symlinkat readlink readlinkat
		chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat umask utime utimes utimensat futimesat
		setxattr lsetxattr fsetxattr getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr
		removexattr lremovexattr fremovexattr setxattrat getxattrat listxattrat removexattrat`)},
		{"memory", Allow, "the process's own memory, bounded by the memory limit", calls(`
		mmap mprotect munmap brk mremap msync mincore madvise mlock mlock2 munlock mlockall munlockall mseal
		pkey_mprotect pkey_alloc pkey_free memfd_create map_shadow_stack get_mempolicy`)},
		{"processes", Allow, "programs start programs; all of them stay in the sandbox and its limits", calls(`
		fork vfork execve execveat exit exit_group wait4 waitid getpid getppid gettid getpgid getpgrp setpgid
		getsid setsid set_tid_address set_robust_list get_robust_list arch_prctl rseq membarrier
		pidfd_open pidfd_send_signal getrlimit getrusage times uname sysinfo getcpu
		getpriority setpriority ioprio_get ioprio_set sched_yield sched_setparam sched_getparam sched_setscheduler
		sched_getscheduler sched_get_priority_max sched_get_priority_min sched_rr_get_interval
		sched_setaffinity sched_getaffinity sched_setattr sched_getattr`)},
		{"identity", Allow, "asking who one is; changing it fails for lack of capabilities, and a program may always drop what it has", calls(`
		getuid geteuid getgid getegid getresuid getresgid getgroups setuid setgid setreuid setregid setresuid
		setresgid setfsuid setfsgid setgroups capget capset`)},
		{"signals", Allow, "signals reach the sandbox's own processes only", calls(`
		rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending rt_sigtimedwait rt_sigqueueinfo rt_sigsuspend
		rt_tgsigqueueinfo sigaltstack kill tkill tgkill pause restart_syscall signalfd signalfd4`)},
		{"waiting", Allow, "threads and event loops", calls(`
		futex futex_waitv futex_wake futex_wait futex_requeue poll ppoll select pselect6 epoll_create epoll_create1
		epoll_ctl epoll_wait epoll_pwait epoll_pwait2 eventfd eventfd2 inotify_init inotify_init1
		inotify_add_watch inotify_rm_watch`)},
		{"time", Allow, "reading clocks and waiting for them; setting them is not among these", calls(`
		nanosleep clock_nanosleep clock_gettime clock_getres gettimeofday time getitimer setitimer alarm
		timer_create timer_settime timer_gettime timer_getoverrun timer_delete
		timerfd_create timerfd_settime timerfd_gettime`)},
		{"sockets", Allow, "what to do with a socket; which ones can be made is checked", calls(`
		connect accept accept4 sendto recvfrom sendmsg recvmsg sendmmsg recvmmsg shutdown bind listen
		getsockname getpeername setsockopt getsockopt`)},
		{"ipc", Allow, "System V and POSIX queues and shared memory, in the sandbox's own IPC namespace", calls(`
		shmget shmat shmctl shmdt semget semop semctl semtimedop msgget msgsnd msgrcv msgctl
		mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr`)},
		{"self-confinement", Allow, "a program may confine itself further (browsers do); the kernel only ever takes the stricter verdict", calls(`
		seccomp landlock_create_ruleset landlock_add_rule landlock_restrict_self`)},
		{"randomness", Allow, "cryptography and hash seeds", calls(`getrandom`)},
	}
}

// denied names the calls that are refused for a reason worth telling. A known
// call in none of the groups is refused just the same.
func denied() []Group {
	return []Group{
		{"probed", Missing, "C libraries try these and fall back: clone3 hides its flags in memory, where no filter sees them; the others are conveniences", calls(`
		clone3 process_madvise vmsplice cachestat file_getattr file_setattr rseq_slice_yield`)},
		{"other processes", Deny, "reading or steering another process's memory, descriptors or policy", calls(`
		ptrace process_vm_readv process_vm_writev pidfd_getfd kcmp process_mrelease move_pages migrate_pages`)},
		{"namespaces and mounts", Deny, "the root and the namespaces stay as they were made", calls(`
		setns mount umount2 pivot_root chroot open_tree open_tree_attr move_mount fsopen fsconfig fsmount fspick
		mount_setattr statmount listmount listns`)},
		{"large kernel interfaces", Deny, "much kernel code, much of its history of holes, and io_uring does file and network work past any filter", calls(`
		io_uring_setup io_uring_enter io_uring_register bpf perf_event_open userfaultfd
		io_setup io_submit io_getevents io_pgetevents io_destroy io_cancel
		fanotify_init fanotify_mark memfd_secret lookup_dcookie uprobe uretprobe`)},
		{"keyrings", Deny, "kernel keyrings are not namespaced", calls(`add_key request_key keyctl`)},
		{"file handles", Deny, "a handle opens a file by number, past every path", calls(`
		name_to_handle_at open_by_handle_at`)},
		{"the machine", Deny, "administration of the host", calls(`
		reboot kexec_load kexec_file_load init_module finit_module delete_module create_module swapon swapoff
		syslog acct quotactl quotactl_fd sync vhangup iopl ioperm modify_ldt`)},
		{"the machine's clock and name", Deny, "shared with, or shown to, others", calls(`
		clock_settime clock_adjtime adjtimex settimeofday sethostname setdomainname`)},
		{"memory placement", Deny, "NUMA policy is the host's business", calls(`
		mbind set_mempolicy set_mempolicy_home_node`)},
		{"relics", Deny, "kept by kernels for programs of the nineties", calls(`
		uselib ustat sysfs remap_file_pages nfsservctl _sysctl`)},
	}
}
