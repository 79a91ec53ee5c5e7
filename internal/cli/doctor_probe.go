package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
)

// probe prints, one fact a line, what a program inside sees of its confinement.
const probe = `while read -r key value rest; do case $key in
Seccomp:|NoNewPrivs:|Cap*) echo "$key $value";; esac; done </proc/self/status
echo "core: $(ulimit -c)"
while read -r name rest; do case $name in *:*) echo "interface: ${name%%:*}";; esac; done </proc/net/dev
for dir in / /usr /etc; do if (: >"$dir/.llmsandbox-probe") 2>/dev/null; then echo "writable: $dir"; fi; done
for ns in user mnt pid net ipc time; do echo "ns-$ns: $(readlink /proc/self/ns/$ns)"; done
while read -r id parent dev root rest; do case $root in */.cache/*|/home/*|/root/*) echo "path: $root";; esac; done </proc/self/mountinfo
exit 7`

// observed is what the probe printed, by key; a key may have several values.
type observed map[string][]string

func parseProbe(text string) observed {
	o := observed{}
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		key, value, _ := strings.Cut(lines.Text(), ":")
		o[key] = append(o[key], strings.TrimSpace(value))
	}
	return o
}

// only tells whether a key was seen, with nothing but one value.
func (o observed) only(key, value string) bool {
	for _, v := range o[key] {
		if v != value {
			return false
		}
	}
	return len(o[key]) > 0
}

// noCapabilities tells whether all five sets were seen and are empty.
func (o observed) noCapabilities() bool {
	for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"} {
		if !o.only(set, strings.Repeat("0", 16)) {
			return false
		}
	}
	return true
}

// ownNamespace tells whether the sandbox has another namespace than this process.
// Where this process has none to compare with, it is taken for granted.
func (o observed) ownNamespace(kind string) bool {
	host, err := os.Readlink("/proc/self/ns/" + kind)
	return err != nil || len(o["ns-"+kind]) == 1 && o["ns-"+kind][0] != host && o["ns-"+kind][0] != ""
}

// A check compares a control, when it is declared as enforced, with what was seen.
type check struct {
	control string
	holds   func(observed) bool
	wrong   string
}

var checks = []check{
	{"seccomp", func(o observed) bool { return o.only("Seccomp", "2") }, "no filter is on the program"},
	{"no-new-privs", func(o observed) bool { return o.only("NoNewPrivs", "1") }, "the program may gain privileges"},
	{"capabilities", observed.noCapabilities, "the program has capabilities"},
	{"core-dumps", func(o observed) bool { return o.only("core", "0") }, "the program may dump core"},
	{"network", func(o observed) bool { return o.only("interface", "lo") && o.ownNamespace("net") }, "there is more than loopback"},
	{"filesystem", func(o observed) bool { return len(o["writable"]) == 0 && o.ownNamespace("mnt") }, "the root can be written to, or is the host's"},
	{"processes", func(o observed) bool { return o.ownNamespace("pid") }, "the host's processes are seen"},
	{"ipc", func(o observed) bool { return o.ownNamespace("ipc") }, "IPC is shared with the host"},
	{"user-namespace", func(o observed) bool { return o.ownNamespace("user") }, "users are the host's"},
	{"hidden-uptime", func(o observed) bool { return o.ownNamespace("time") }, "the clocks are the host's"},
	{"host-paths", func(o observed) bool { return len(o["path"]) == 0 }, "the mount table names folders of users"},
}

// verify looks from inside whether what a sandbox declares to be enforced is.
func verify(ctx context.Context, sb *llmsandbox.Sandbox) error {
	res, err := sb.Shell(ctx, probe, nil)
	if err != nil {
		return err
	}
	if res.ExitCode == nil || *res.ExitCode != 7 {
		return fmt.Errorf("a program that exits with 7 was seen to end as %q: %s", res.Status, res.Reason)
	}
	return compare(sb.Capabilities(), parseProbe(res.Stdout))
}

// compare returns every control that is declared as enforced and does not hold.
func compare(caps backend.Capabilities, seen observed) error {
	var errs []error
	for _, c := range checks {
		k, ok := caps.Get(c.control)
		if c.control == "network" && strings.HasPrefix(k.By, "NetworkPolicy") {
			continue // a pod has more than loopback; that the rest leads nowhere was tried before
		}
		if ok && k.Enforced && !c.holds(seen) {
			errs = append(errs, fmt.Errorf("%s is declared as enforced by %s, but from inside %s: run nothing untrusted here, and report this", c.control, k.By, c.wrong))
		}
	}
	return errors.Join(errs...)
}
