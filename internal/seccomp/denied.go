package seccomp

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
