int main(void) {
  char dir[] = "abuse-XXXXXX";
  if (!mkdtemp(dir)) { perror(dir); return 1; }
  TRY("mount tmpfs", mount("none", dir, "tmpfs", 0, 0));
  TRY("mount proc", mount("none", dir, "proc", 0, 0));
  TRY("mount bind", mount("/proc", dir, 0, MS_BIND, 0));
  TRY("mount remount rw", mount(0, "/", 0, MS_REMOUNT | MS_BIND, 0));
  TRY("mount propagation", mount(0, "/", 0, MS_SHARED, 0));
  TRY("umount", umount2("/proc", MNT_DETACH));
  TRY("fsopen", syscall(NR_fsopen, "tmpfs", 0));
  TRY("fspick", syscall(NR_fspick, AT_FDCWD, dir, 0));
  TRY("fsconfig", syscall(NR_fsconfig, -1, 6, 0, 0, 0));
  TRY("fsmount", syscall(NR_fsmount, -1, 0, 0));
  TRY("open_tree", syscall(NR_open_tree, AT_FDCWD, "/", 1));
  TRY("move_mount", syscall(NR_move_mount, AT_FDCWD, dir, AT_FDCWD, dir, 0));
  TRY("mount_setattr", syscall(NR_mount_setattr, AT_FDCWD, "/", 0, 0, 0));
  TRY("pivot_root", syscall(SYS_pivot_root, dir, dir));
  TRY("chroot", chroot(dir));
  TRY("statmount", syscall(NR_statmount, 0, 0, 0, 0));
  TRY("listmount", syscall(NR_listmount, 0, 0, 0, 0));
  rmdir(dir);
  say("end", "end");
}
