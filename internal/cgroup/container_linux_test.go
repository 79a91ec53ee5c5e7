package cgroup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// inContainer makes a group as the root of a container does, which sees its own
// group as the top, and reports.
func inContainer() error {
	if err := unix.Unmount("/sys/fs/cgroup", unix.MNT_DETACH); err != nil { // the same again would be refused
		return fmt.Errorf("unmount: %w", err)
	}
	if err := unix.Mount("cgroup2", "/sys/fs/cgroup", "cgroup2", 0, ""); err != nil {
		return fmt.Errorf("mount: %w", err)
	}
	s := detect("/", os.Geteuid())
	for _, c := range s.Controls() {
		if !c.Enforced {
			return fmt.Errorf("%s: %s", c.Name, c.Why)
		}
	}
	g, err := s.Create(context.Background(), "cgtest-inner", Limits{Memory: 64 << 20, CPUs: 1, PIDs: 20})
	if err != nil {
		return err
	}
	sleep := exec.Command("/proc/self/exe")
	sleep.Env = []string{"CGROUP_TEST_CHILD=sleep"}
	err = g.Start(context.Background(), func(fd int) (int, error) {
		sleep.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: fd >= 0, CgroupFD: max(fd, 0)}
		err := sleep.Start()
		return 0, err
	})
	if err != nil {
		return err
	}
	own, err := readOwn(fmt.Sprintf("/proc/%d/cgroup", sleep.Process.Pid))
	if err != nil {
		return err
	}
	sleep.Process.Kill()
	sleep.Wait()
	if err := errors.Join(g.Destroy(context.Background()), s.Tidy()); err != nil {
		return err
	}
	fmt.Println("born in", own[""])
	return nil
}

// container runs inContainer in a group that is its top; with others in it as well
// where busy.
func container(t *testing.T, busy bool) string {
	s := support(t)
	if s.Version != V2 || os.Geteuid() != 0 {
		t.Skip("a container's group takes root and version 2")
	}
	if err := s.prepare(); err != nil {
		t.Fatal(err)
	}
	top := filepath.Join(s.top, fmt.Sprintf("cgtest-container-%d", os.Getpid()))
	if err := os.Mkdir(top, 0o755); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Open(top, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if busy {
		other := exec.Command("/proc/self/exe")
		other.Env = []string{"CGROUP_TEST_CHILD=sleep"}
		other.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: fd}
		if err := other.Start(); err != nil {
			t.Fatal(err)
		}
		defer other.Wait()
		defer other.Process.Kill()
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{"CGROUP_TEST_CHILD=container"}
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: fd, Unshareflags: unix.CLONE_NEWCGROUP | unix.CLONE_NEWNS}
	out, _ := cmd.CombinedOutput()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), destroyTime)
		defer cancel()
		for _, d := range []string{top + "/" + dirName + "-owner", top} {
			if err := removeDir(ctx, d); err != nil {
				t.Error(err)
			}
		}
	})
	return string(out)
}

func TestContainerThatIsAloneInItsGroup(t *testing.T) {
	if out := container(t, false); out != "born in /llmsandbox/cgtest-inner\n" {
		t.Fatalf("%s, want \"born in /llmsandbox/cgtest-inner\\n\"", out)
	}
}

func TestContainerWithOthersInItsGroup(t *testing.T) {
	if out := container(t, true); !strings.HasPrefix(out, "memory: other processes live in the group") {
		t.Fatalf("%s, want it to begin with \"memory: other processes live in the group\"", out)
	}
}
