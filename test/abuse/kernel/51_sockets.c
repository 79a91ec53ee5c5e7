int main(void) {
  static const struct { const char *name; int family, type, protocol; } tries[] = {
      {"packet raw", 17, 3, 0x0300}, {"packet dgram", 17, 2, 0x0300}, {"SOCK_PACKET", 2, 10, 0x0300},
      {"raw icmp", 2, 3, 1}, {"raw tcp", 2, 3, 6}, {"raw any", 2, 3, 255}, {"raw icmpv6", 10, 3, 58},
      {"ping", 2, 2, 1}, {"sctp", 2, 1, 132}, {"udplite", 2, 2, 136}, {"mptcp", 2, 1, 262}, {"dccp", 2, 6, 33},
      {"vsock stream", 40, 1, 0}, {"vsock dgram", 40, 2, 0}, {"alg", 38, 5, 0}, {"xdp", 44, 3, 0}, {"smc", 43, 1, 0},
      {"netlink netfilter", 16, 3, 12}, {"netlink generic", 16, 3, 16}, {"netlink audit", 16, 3, 9},
      {"netlink uevent", 16, 3, 15}, {"netlink sock_diag", 16, 3, 4}, {"netlink xfrm", 16, 3, 6},
      {"key", 15, 3, 2}, {"can", 29, 3, 1}, {"bluetooth", 31, 3, 1}, {"tipc", 30, 5, 0}, {"rds", 21, 5, 0},
      {"kcm", 41, 2, 0}, {"qipcrtr", 42, 2, 0}, {"phonet", 35, 2, 0}, {"nfc", 39, 3, 0}, {"x25", 9, 5, 0},
  };
  for (unsigned i = 0; i < sizeof tries / sizeof *tries; i++)
    TRY(tries[i].name, socket(tries[i].family, tries[i].type, tries[i].protocol));
  int pair[2];
  TRY("socketpair tipc", socketpair(30, 5, 0, pair));
  say("end", "end");
}
