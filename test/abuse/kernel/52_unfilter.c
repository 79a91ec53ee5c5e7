#include <linux/filter.h>
#include <linux/seccomp.h>
static void status(const char *field, const char *want) {
  char line[256];
  FILE *f = fopen("/proc/self/status", "r");
  if (!f) { say(field, "no /proc/self/status"); return; }
  while (fgets(line, sizeof line, f)) {
    size_t n = strlen(field);
    if (!strncmp(line, field, n) && line[n] == ':') {
      char *v = line + n + 1 + strspn(line + n + 1, "\t ");
      v[strcspn(v, "\n")] = 0;
      say(field, strcmp(v, want) ? "ok" : "EPERM"); /* "ok": not in force */
      fclose(f);
      return;
    }
  }
  fclose(f);
  say(field, "field missing");
}
/* Not every kernel has the field NoNewPrivs, but each has the question. */
static void no_new_privs(const char *when) { say(when, prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? "EPERM" : "ok"); }
/* A kernel that knows no such action kills whoever's filter returns it. */
static int can_log(void) {
  uint32_t action = SECCOMP_RET_LOG;
  return syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0 || (errno != EINVAL && errno != EOPNOTSUPP);
}
int main(void) {
  no_new_privs("no_new_privs");
  status("Seccomp", "2");
  prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0);
  no_new_privs("no_new_privs after taking it back");
  struct sock_filter all[] = {{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
  struct sock_fprog prog = {1, all};
  syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog);
  TRY("ptrace after a filter that allows all", ptrace(PTRACE_TRACEME, 0, 0, 0));
  TRY("unshare after a filter that allows all", unshare(0x10000000));
  if (can_log()) {
    struct sock_filter err[] = {{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_LOG}};
    struct sock_fprog log = {1, err};
    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &log);
    TRY("ptrace after a filter that logs all", ptrace(PTRACE_TRACEME, 0, 0, 0));
  }
  say("end", "end");
}
