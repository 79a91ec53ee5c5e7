//go:build linux

package guest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestPrivileges: whatever the agent may do, the code has no capability, cannot get
// one, has no descriptor of the agent's, and default signals.
func TestPrivileges(t *testing.T) {
	eachMode(t, func(t *testing.T, a *testAgent) {
		r := a.run(sh("grep -E '^(Cap|NoNewPrivs|SigIgn|SigBlk|Uid|Gid|Groups)' /proc/self/status; ls /proc/self/fd; ulimit -c; umask; pwd; grep pending /proc/self/limits"))
		for _, name := range []string{"CapInh", "CapPrm", "CapEff", "CapAmb", "SigIgn", "SigBlk"} {
			if !strings.Contains(r.out, name+":\t0000000000000000\n") {
				t.Errorf("%s is not empty, want out containing %q", name, name+":\t0000000000000000\n")
			}
		}
		if !strings.Contains(r.out, "NoNewPrivs:\t1\n") {
			t.Errorf("no_new_privs is not set: %.300q, want out containing \"NoNewPrivs:\\t1\\n\"", r.out)
		}
		before, pending, _ := strings.Cut(r.out, "Max pending signals")
		if !strings.HasSuffix(before, "\n0\n1\n2\n3\n0\n0022\n/\n") { // 3 is the directory that ls reads
			t.Errorf("descriptors, core size, umask or directory: %.300q, want before ending in \"\\n0\\n1\\n2\\n3\\n0\\n0022\\n/\\n\"", before)
		}
		if !slices.Equal(strings.Fields(pending), []string{"1024", "1024", "signals"}) {
			t.Error("signals that wait, which the kernel counts for all sandboxes of a user: slices.Equal(strings.Fields(pending), []string{\"1024\", \"1024\", \"signals\"}) = false, want true")
		}
		if t.Failed() {
			t.Log(r.out, r.err)
		}
		if info := a.client.Info(); info.AgentUID != info.CodeUID {
			uids := fmt.Sprintf("Uid:\t%[1]d\t%[1]d\t%[1]d\t%[1]d\n", info.CodeUID)
			if !strings.Contains(r.out, uids) || !strings.Contains(r.out, "CapBnd:\t0000000000000000\n") {
				t.Errorf("out = %v, want out containing %q, out containing \"CapBnd:\\t0000000000000000\\n\"", r.out, uids)
			}
			r = a.run(sh("kill -9 $PPID; ls /proc/$PPID/fd; cat /proc/$PPID/mem /proc/$PPID/environ; exit 3"))
			if !r.exit.Known || r.exit.Code != 3 || r.out != "" {
				t.Errorf("%+v, want Known true, Code = 3, out empty", r)
			}
		}
	})
}
