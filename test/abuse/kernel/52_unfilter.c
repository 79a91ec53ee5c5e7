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
int main(void) {
  status("NoNewPrivs", "1");
  status("Seccomp", "2");
  prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0);
  status("NoNewPrivs", "1");
  struct sock_filter all[] = {{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
  struct sock_fprog prog = {1, all};
  syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog);
  TRY("ptrace after a filter that allows all", ptrace(PTRACE_TRACEME, 0, 0, 0));
  TRY("unshare after a filter that allows all", unshare(0x10000000));
  struct sock_filter err[] = {{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_LOG}};
  struct sock_fprog log = {1, err};
  syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &log);
  TRY("ptrace after a filter that logs all", ptrace(PTRACE_TRACEME, 0, 0, 0));
  say("end", "end");
}
