int main(void) {
  struct rlimit r;
  getrlimit(RLIMIT_CORE, &r);
  say("core limit", r.rlim_cur <= 1 && r.rlim_max <= 1 ? "EPERM" : "ok");
  // 0 would let a handler of the host's run on the crash.
  struct rlimit none = {0, 0};
  TRY("lower the core limit", setrlimit(RLIMIT_CORE, &none));
  r.rlim_cur = r.rlim_max = RLIM_INFINITY;
  TRY("raise the core limit", setrlimit(RLIMIT_CORE, &r));
  int status = 0;
  pid_t child = fork();
  if (child == 0) abort();
  waitpid(child, &status, 0);
  say("core dumped", WCOREDUMP(status) ? "ok" : "EPERM");
  say("core file", access("core", F_OK) == 0 ? "ok" : "EPERM");
  say("end", "end");
}
