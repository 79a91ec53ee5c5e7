#include <mqueue.h>
#include <sys/inotify.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#define UNTIL(what, limit, call)                                               \
  do {                                                                         \
    long n = 0;                                                                \
    errno = 0;                                                                 \
    while (n < (limit) && (long)(call) >= 0) n++;                              \
    if (n >= (limit)) printf("%s: no end\n", what);                            \
    else printf("%s: %s after %ld\n", what, errname(errno), n);                \
  } while (0)
int main(void) {
  setvbuf(stdout, 0, _IOLBF, 0);
  char name[64];
  timer_t timer;
  struct sigevent quiet = {.sigev_notify = SIGEV_NONE};
  UNTIL("inotify", 100000, inotify_init1(0));
  for (int fd = 3; fd < 100000; fd++) close(fd);
  UNTIL("timers", 2000000, timer_create(CLOCK_MONOTONIC, &quiet, &timer));
  UNTIL("message queues", 100000, msgget(IPC_PRIVATE, 0600));
  UNTIL("semaphores", 100000, semget(IPC_PRIVATE, 250, 0600));
  UNTIL("shared memory", 100000, shmget(IPC_PRIVATE, 1 << 20, 0600));
  UNTIL("posix queues", 100000, (snprintf(name, sizeof name, "/abuse%ld", n), syscall(SYS_mq_open, name + 1, O_CREAT | O_RDWR, 0600, 0)));
  UNTIL("locked memory", 100000, mlock(mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 1 << 20));
}
