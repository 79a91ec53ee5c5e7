package local

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// TestOrdinaryUser runs this package's tests once more as a user without privileges.
func TestOrdinaryUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this is an ordinary user already")
	}
	const uid = 12345
	home, err := os.MkdirTemp("/var/tmp", "lsb-home-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(home)
	binary := filepath.Join(home, "local.test")
	if out, err := exec.Command("cp", os.Args[0], binary).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	agent := filepath.Join(home, "agent")
	if out, err := exec.Command("cp", agentBinary, agent).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, p := range []string{home, binary, agent} {
		if err := os.Chown(p, uid, uid); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(binary, "-test.v", "-test.run", "Inside|DiskFull|Layers|OwnerKilled|TwoProcesses|Controls|Many|Deadline|HostPaths|ImageUser|ImageConfig|ManyLayers|Required|ImageMissing|TestImage|Grows|InMemory|HostMount|Volume")
	cmd.Dir = home
	cmd.Env = []string{"HOME=" + home, "PATH=/usr/local/bin:/usr/bin:/bin", "TMPDIR=" + home, childAgent + "=" + agent,
		"LLMSANDBOX_REQUIRE=" + os.Getenv("LLMSANDBOX_REQUIRE")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
}
