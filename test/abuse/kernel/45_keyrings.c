int main(void) {
  TRY("add_key", syscall(SYS_add_key, "user", "abuse", "x", 1, -3));
  TRY("request_key", syscall(SYS_request_key, "user", "abuse", 0, 0));
  TRY("keyctl get_keyring_id", syscall(SYS_keyctl, 0, -3, 1));
  TRY("keyctl join_session", syscall(SYS_keyctl, 1, "abuse"));
  say("end", "end");
}
