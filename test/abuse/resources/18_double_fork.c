/* A daemon that keeps forking itself away from whoever follows its parents. */
int main(void) {
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  for (int i = 0; i < 4; i++) {
    if (fork()) continue;
    setsid();
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0);
    if (fork()) _exit(0);
    setsid();
    for (int hops = 0; hops < 2000; hops++)
      if (fork()) _exit(0);
    execlp("sleep", "abuse-survivor", "3600", (char *)0);
    _exit(1);
  }
  usleep(20000);
  puts("done");
}
