#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *errname(int e) {
  static char buf[24];
  switch (e) {
  case EPERM: return "EPERM";
  case ENOENT: return "ENOENT";
  case ESRCH: return "ESRCH";
  case EBADF: return "EBADF";
  case EAGAIN: return "EAGAIN";
  case ENOMEM: return "ENOMEM";
  case EACCES: return "EACCES";
  case EFAULT: return "EFAULT";
  case EBUSY: return "EBUSY";
  case EEXIST: return "EEXIST";
  case ENODEV: return "ENODEV";
  case EINVAL: return "EINVAL";
  case EROFS: return "EROFS";
  case ENOSYS: return "ENOSYS";
  case EAFNOSUPPORT: return "EAFNOSUPPORT";
  case EPROTONOSUPPORT: return "EPROTONOSUPPORT";
  }
  snprintf(buf, sizeof buf, "errno %d", e);
  return buf;
}

/* One line a try, in the form the tests read. */
static void say(const char *what, const char *result) {
  printf("{\"case\":%d,\"what\":\"%s\",\"result\":\"%s\"}\n", CASE, what, result);
  fflush(stdout);
}

/* "ok" says that the attack succeeded. */
#define TRY(what, call)                                                        \
  do {                                                                         \
    errno = 0;                                                                 \
    long r_ = (long)(call);                                                    \
    say(what, r_ < 0 ? errname(errno) : "ok");                                 \
  } while (0)

/* For calls whose numbers older headers lack; they are the same everywhere. */
enum {
  NR_pidfd_open = 434, NR_pidfd_getfd = 438, NR_io_uring_setup = 425, NR_io_uring_enter = 426,
  NR_io_uring_register = 427, NR_open_tree = 428, NR_move_mount = 429, NR_fsopen = 430, NR_fsconfig = 431,
  NR_fsmount = 432, NR_fspick = 433, NR_clone3 = 435, NR_mount_setattr = 442, NR_quotactl_fd = 443,
  NR_statmount = 457, NR_listmount = 458,
};
