/* Arguments are such that nothing happens to a machine that lets a call through. */
int main(void) {
  char attr[128] = {0};
  TRY("bpf map", syscall(SYS_bpf, 0, attr, sizeof attr));
  TRY("bpf program", syscall(SYS_bpf, 5, attr, sizeof attr));
  TRY("perf_event_open", syscall(SYS_perf_event_open, attr, 0, -1, -1, 0));
  TRY("userfaultfd", syscall(SYS_userfaultfd, 1));
  TRY("kexec_load", syscall(SYS_kexec_load, 0, -1, 0, -1L));
#ifdef SYS_kexec_file_load
  TRY("kexec_file_load", syscall(SYS_kexec_file_load, -1, -1, 0, 0, -1L));
#endif
  TRY("init_module", syscall(SYS_init_module, 0, 0, ""));
  TRY("finit_module", syscall(SYS_finit_module, -1, "", 0));
  TRY("delete_module", syscall(SYS_delete_module, "no_such_module", O_NONBLOCK));
  TRY("reboot", syscall(SYS_reboot, 1, 2, 3, 0)); /* wrong magic */
  TRY("swapon", syscall(SYS_swapon, "/no/such/swap", 0));
  TRY("swapoff", syscall(SYS_swapoff, "/no/such/swap"));
  TRY("syslog read", syscall(SYS_syslog, 3, attr, sizeof attr));
  TRY("syslog size", syscall(SYS_syslog, 10, 0, 0));
  TRY("acct", syscall(SYS_acct, "/no/such/file"));
  TRY("quotactl", syscall(SYS_quotactl, 0x800001, "/no/such/device", 0, 0));
  TRY("quotactl_fd", syscall(NR_quotactl_fd, -1, 0, 0, 0));
#ifdef SYS_lookup_dcookie
  TRY("lookup_dcookie", syscall(SYS_lookup_dcookie, 1, attr, sizeof attr));
#endif
#ifdef SYS_iopl
  TRY("iopl", syscall(SYS_iopl, 3));
  TRY("ioperm", syscall(SYS_ioperm, 0x70, 2, 1));
  TRY("modify_ldt", syscall(SYS_modify_ldt, 0, attr, sizeof attr));
#endif
  int handle[40] = {128}, mount_id;
  TRY("name_to_handle_at", syscall(SYS_name_to_handle_at, AT_FDCWD, "/", handle, &mount_id, 0));
  TRY("open_by_handle_at", syscall(SYS_open_by_handle_at, AT_FDCWD, handle, O_RDONLY));
  TRY("fanotify_init", syscall(SYS_fanotify_init, 0, 0));
  TRY("io_setup", syscall(SYS_io_setup, 1, attr));
  TRY("mknod null device", mknod("abuse-null", S_IFCHR | 0666, 1 << 8 | 3));
  TRY("mknod disk", mknod("abuse-disk", S_IFBLK | 0666, 8 << 8));
  TRY("prctl set_mm", prctl(PR_SET_MM, 1, 0, 0, 0));
  int tty = open("/dev/tty", O_RDWR | O_NOCTTY);
  TRY("ioctl TIOCSTI", ioctl(tty, TIOCSTI, "x"));
  TRY("ioctl TIOCSTI with high bits", syscall(SYS_ioctl, tty, 0x100000000UL | TIOCSTI, "x"));
  TRY("ioctl TIOCLINUX", ioctl(tty, TIOCLINUX, "\3"));
  TRY("ioctl TIOCSETD", ioctl(tty, TIOCSETD, &(int){21}));
  say("end", "end");
}
