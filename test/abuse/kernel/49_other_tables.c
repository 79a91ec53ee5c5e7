#if defined(__x86_64__)
static long entry32(long nr, long a, long b) {
  long r;
  __asm__ volatile("int $0x80" : "=a"(r) : "a"(nr), "b"(a), "c"(b) : "memory", "r8", "r9", "r10", "r11");
  return r;
}
static void try32(const char *what, long nr, long a, long b) {
  long r = (int)entry32(nr, a, b);
  say(what, r < 0 ? errname(-r) : "ok");
}
int main(void) {
  try32("int 0x80 getpid", 20, 0, 0);
  try32("int 0x80 unshare user", 310, 0x10000000, 0);
  try32("int 0x80 ptrace traceme", 26, 0, 0);
  try32("int 0x80 keyctl", 288, 0, -3);
  TRY("x32 getpid", syscall(0x40000000 | SYS_getpid));
  TRY("x32 unshare user", syscall(0x40000000 | SYS_unshare, 0x10000000));
  TRY("x32 execve", syscall(0x40000000 | 520, 0, 0, 0));
  TRY("x32 ptrace", syscall(0x40000000 | 521, 0, 0, 0, 0));
  say("end", "end");
}
#else
int main(void) {
  say("no second system call table that a 64-bit program can enter", "ENOSYS");
  say("end", "end");
}
#endif
