int main(void) {
  static char secret[] = "secret", buf[8];
  pid_t child = fork();
  if (child == 0) { pause(); _exit(0); }
  struct iovec mine = {buf, 6}, theirs = {secret, 6};
  TRY("ptrace attach child", ptrace(PTRACE_ATTACH, child, 0, 0));
  TRY("ptrace seize child", syscall(SYS_ptrace, 0x4206, child, 0, 0));
  TRY("ptrace attach parent", ptrace(PTRACE_ATTACH, getppid(), 0, 0));
  TRY("ptrace attach pid 1", ptrace(PTRACE_ATTACH, 1, 0, 0));
  TRY("ptrace traceme", ptrace(PTRACE_TRACEME, 0, 0, 0));
  TRY("process_vm_readv child", syscall(SYS_process_vm_readv, child, &mine, 1, &theirs, 1, 0));
  TRY("process_vm_writev child", syscall(SYS_process_vm_writev, child, &mine, 1, &theirs, 1, 0));
  TRY("process_vm_readv pid 1", syscall(SYS_process_vm_readv, 1, &mine, 1, &theirs, 1, 0));
  int fd = syscall(NR_pidfd_open, child, 0);
  TRY("pidfd_getfd child", syscall(NR_pidfd_getfd, fd, 1, 0));
  fd = syscall(NR_pidfd_open, 1, 0);
  TRY("pidfd_getfd pid 1", syscall(NR_pidfd_getfd, fd, 0, 0));
  TRY("kcmp child", syscall(SYS_kcmp, getpid(), child, 0, 0, 0));
  TRY("move_pages child", syscall(SYS_move_pages, child, 0, 0, 0, 0, 0));
  kill(child, SIGKILL);
  waitpid(child, 0, 0);
  say("end", "end");
}
