int main(void) {
  TRY("personality ADDR_NO_RANDOMIZE", syscall(SYS_personality, 0x0040000));
  TRY("personality READ_IMPLIES_EXEC", syscall(SYS_personality, 0x0400000));
  TRY("personality MMAP_PAGE_ZERO", syscall(SYS_personality, 0x0100000));
  TRY("personality PER_LINUX32", syscall(SYS_personality, 8));
  say("end", "end");
}
