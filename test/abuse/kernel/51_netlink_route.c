#include <linux/if.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
/* NETLINK_ROUTE is there to look at interfaces; changing them needs what the code lacks. */
static void change(const char *what, int type, int flags, int index, unsigned up) {
  struct { struct nlmsghdr h; struct ifinfomsg i; char room[64]; } m = {0};
  m.h.nlmsg_len = NLMSG_LENGTH(sizeof m.i);
  m.h.nlmsg_type = type;
  m.h.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | flags;
  m.i.ifi_index = index;
  m.i.ifi_flags = up;
  m.i.ifi_change = IFF_UP;
  int s = socket(16, 3, 0);
  if (s < 0) { say(what, errname(errno)); return; }
  if (send(s, &m, m.h.nlmsg_len, 0) < 0) { say(what, errname(errno)); close(s); return; }
  char buf[4096];
  ssize_t n = recv(s, buf, sizeof buf, 0);
  struct nlmsghdr *h = (struct nlmsghdr *)buf;
  if (n < (ssize_t)sizeof *h || h->nlmsg_type != NLMSG_ERROR) say(what, "no answer");
  else {
    int e = -((struct nlmsgerr *)NLMSG_DATA(h))->error;
    say(what, e ? errname(e) : "ok");
  }
  close(s);
}
int main(void) {
  change("take loopback down", RTM_NEWLINK, 0, 1, 0);
  change("remove loopback", RTM_DELLINK, 0, 1, 0);
  say("end", "end");
}
