package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox"
)

// TestAbuse06Swap reads the limits that the kernel holds the sandbox to.
func TestAbuse06Swap(t *testing.T) {
	sb := open(t, llmsandbox.Options{Limits: llmsandbox.Limits{Memory: 64 << 20}})
	if c, _ := sb.Capabilities().Get("memory"); !c.Enforced {
		t.Skipf("memory is declared as not enforced: %s", c.Why)
	}
	seen := 0
	dirs, err := groups(func(name string) bool { return strings.HasSuffix(name, "-"+sb.ID()) })
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		read := func(name string) string {
			b, _ := os.ReadFile(filepath.Join(dir, name)) // each version has its own files
			return strings.TrimSpace(string(b))
		}
		switch {
		case read("memory.swap.max") != "":
			seen++
			if v := read("memory.swap.max"); v != "0" {
				t.Errorf("memory.swap.max is %s, want \"0\"", v)
			}
		case read("memory.memsw.limit_in_bytes") != "":
			seen++
			if swap, memory := read("memory.memsw.limit_in_bytes"), read("memory.limit_in_bytes"); swap != memory {
				t.Errorf("memory and swap together may be %s, memory %s", swap, memory)
			}
		case read("memory.swappiness") != "":
			seen++
			if v := read("memory.swappiness"); v != "0" {
				t.Errorf("memory.swappiness is %s, want \"0\"", v)
			}
		}
	}
	if seen == 0 {
		t.Errorf("memory is declared as enforced, but no cgroup of the sandbox says how: seen = %v, want other than 0", seen)
	}
}

// TestHostRootPython uses what the host's own root file system brings along: its
// certificates and time zones, and the user that is made up for the code.
func TestHostRootPython(t *testing.T) {
	sb := open(t, llmsandbox.Options{Language: "python"})
	res := run(t, sb, `
import datetime, getpass, os, ssl, zoneinfo
print(len(ssl.create_default_context().get_ca_certs()) > 10)
print(datetime.datetime(2024, 7, 1, tzinfo=zoneinfo.ZoneInfo("Europe/Rome")).utcoffset())
print(getpass.getuser(), os.path.expanduser("~"))
`, nil)
	wantExit(t, res, 0)
	wantStdout(t, res, "True\n2:00:00\nsandbox /tmp/home\n")
}

// TestAbuse84NoSocketInside: the way to the agent is a socket of the host, and inside
// there is none at all.
func TestAbuse84NoSocketInside(t *testing.T) {
	sb := open(t, llmsandbox.Options{})
	res := run(t, sb, `
for table in ("unix", "tcp", "tcp6", "udp", "packet"):
    try: print(*open("/proc/net/" + table).readlines()[1:], end="")
    except OSError: pass
`, nil)
	wantExit(t, res, 0)
	wantStdout(t, res, "")
}
