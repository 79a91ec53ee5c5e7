/* No list of programs is claimed, so executing a memfd is allowed; what counts
   is that the program stays confined. */
int main(int argc, char **argv) {
  if (argc > 1) {
    TRY("unshare in a memfd program", unshare(0x10000000));
    TRY("ptrace in a memfd program", ptrace(PTRACE_ATTACH, getppid(), 0, 0));
    say("end", "end");
    return 0;
  }
  int in = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), out = syscall(SYS_memfd_create, "abuse", 1);
  char buf[1 << 16];
  for (ssize_t n; (n = read(in, buf, sizeof buf)) > 0;)
    if (write(out, buf, n) != n) return 1;
  char *args[] = {argv[0], "inner", 0}, *env[] = {0};
  syscall(SYS_execveat, out, "", args, env, AT_EMPTY_PATH);
  say("execveat of a memfd", errname(errno));
  say("end", "end");
}
