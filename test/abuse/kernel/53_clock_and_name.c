int main(void) {
  struct timespec now;
  struct timex none = {0};
  struct timeval bad = {0, 2000000};
  clock_gettime(CLOCK_REALTIME, &now);
  now.tv_nsec = 2000000000; /* invalid, should a machine let it through */
  TRY("clock_settime", syscall(SYS_clock_settime, CLOCK_REALTIME, &now));
  TRY("settimeofday", syscall(SYS_settimeofday, &bad, 0));
  TRY("clock_adjtime", syscall(SYS_clock_adjtime, CLOCK_REALTIME, &none));
  TRY("adjtimex", syscall(SYS_adjtimex, &none));
  TRY("sethostname", sethostname("abuse", 5));
  TRY("setdomainname", setdomainname("abuse", 5));
  say("end", "end");
}
