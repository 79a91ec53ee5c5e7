static const struct { const char *name; unsigned long flag; } spaces[] = {
    {"mount", 0x20000}, {"cgroup", 0x02000000}, {"uts", 0x04000000}, {"ipc", 0x08000000},
    {"user", 0x10000000}, {"pid", 0x20000000}, {"net", 0x40000000}, {"time", 0x80},
};
int main(void) {
  char what[64];
  for (unsigned i = 0; i < sizeof spaces / sizeof *spaces; i++) {
    snprintf(what, sizeof what, "unshare %s", spaces[i].name);
    TRY(what, unshare(spaces[i].flag));
    if (spaces[i].flag == 0x80) continue; /* clone takes it for an exit signal */
    snprintf(what, sizeof what, "clone %s", spaces[i].name);
    errno = 0;
    long pid = syscall(SYS_clone, spaces[i].flag | SIGCHLD, 0, 0, 0, 0);
    if (pid == 0) _exit(0);
    say(what, pid < 0 ? errname(errno) : "ok");
  }
  uint64_t args[11] = {0x10000000, 0, 0, 0, SIGCHLD};
  errno = 0;
  long pid = syscall(NR_clone3, args, sizeof args);
  if (pid == 0) _exit(0);
  say("clone3 user", pid < 0 ? errname(errno) : "ok");
  static const char *files[] = {"user", "mnt", "net", "pid", "ipc", "uts"};
  for (unsigned i = 0; i < sizeof files / sizeof *files; i++) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/ns/%s", files[i]);
    snprintf(what, sizeof what, "setns %s", files[i]);
    TRY(what, setns(open(path, O_RDONLY), 0));
  }
  TRY("setns by pidfd", setns(syscall(NR_pidfd_open, getpid(), 0), 0x20000));
  say("end", "end");
}
