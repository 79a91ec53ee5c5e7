// Package container checks the files for containers that run llmsandbox.
package container

import (
	"encoding/json"
	"flag"
	"os"
	"testing"

	"github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

var update = flag.Bool("update", false, "write seccomp.json")

const file = "seccomp.json"

// added are the rules by which sandboxes of namespaces work in a container. Without CAP_SYS_ADMIN the kernel
// allows these calls only in a user namespace of the caller's own.
var added = []*seccomp.Syscall{
	{
		Comment: "llmsandbox: namespaces, with a user namespace of their own",
		LinuxSyscall: specs.LinuxSyscall{Names: []string{"clone"}, Action: specs.ActAllow,
			Args: []specs.LinuxSeccompArg{{Index: 0, Value: unix.CLONE_NEWUSER, ValueTwo: unix.CLONE_NEWUSER, Op: specs.OpMaskedEqual}}},
		Includes: &seccomp.Filter{Arches: []string{"amd64", "arm64"}}, // s390x has its arguments in another order
	},
	{
		Comment: "llmsandbox: what sets up a sandbox in its namespaces",
		LinuxSyscall: specs.LinuxSyscall{Action: specs.ActAllow, Names: []string{
			"fsconfig", "fsmount", "fsopen", "mount", "mount_setattr", "move_mount", "open_tree", "pivot_root", "sethostname", "setns", "umount2", "unshare",
		}},
	},
}

// TestSeccomp: the profile is Docker's own, and what namespaces need.
func TestSeccomp(t *testing.T) {
	profile := seccomp.DefaultProfile()
	profile.Syscalls = append(profile.Syscalls, added...)
	want, err := json.MarshalIndent(profile, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	if *update {
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("%s is not Docker's default profile with the added rules, want it the same: run go test ./deploy/container -update", file)
	}
}
