//go:build linux

package container

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/testcommand"
	"github.com/llmsandbox/llmsandbox/internal/testengine"
)

// containerFlags are those of docs/containers.md, with the profile at a path.
func containerFlags(profile string) []string {
	return []string{"--security-opt", "seccomp=" + profile, "--security-opt", "systempaths=unconfined"}
}

// TestCommandInContainer: the local backend works in a container that has the flags of docs/containers.md, without a /proc of its
// own in one that has the first, and in none without.
func TestCommandInContainer(t *testing.T) {
	dir := incontainerDir(t)
	for name, start := range map[string]func(testing.TB) *testengine.Engine{"docker": testengine.Docker, "podman": testengine.Podman, "podman-rootless": testengine.PodmanRootless} {
		t.Run(name, func(t *testing.T) {
			e := start(t)
			image := e.Images(t)("python")
			run := func(user string, flags []string, args ...string) (string, error) {
				all := append([]string{"run", "--rm", "--network", "none", "--user", user, "--volume", filepath.Join(dir, "llmsandbox") + ":/usr/local/bin/llmsandbox:ro"}, flags...)
				out, err := engineCommand(t.Context(), e, append(append(all, image, "llmsandbox"), args...)...).CombinedOutput()
				return string(out), err
			}
			flags := containerFlags(filepath.Join(dir, "seccomp.json"))
			masked := flags[:2]
			for _, user := range []string{"0", "1000"} {
				if out, err := run(user, nil, "doctor"); err == nil || !strings.Contains(out, "A sandbox does NOT work here") || !strings.Contains(out, "--isolation process") {
					t.Errorf("user %s, no flags: %v\n%s\nwant an error, \"A sandbox does NOT work here\" and what does", user, err, out)
				}
				for _, flags := range [][]string{nil, {"--cap-drop", "ALL", "--security-opt", "no-new-privileges"}} {
					if out, err := run(user, flags, "doctor", "--isolation", "process"); err != nil || !strings.HasPrefix(out, "backend local process\n") || !strings.Contains(out, "A sandbox works here.") {
						t.Errorf("user %s, %q: %v\n%s\nwant no error, \"backend local process\" and \"A sandbox works here.\"", user, flags, err, out)
					}
					if out, err := run(user, flags, "run", "--quiet", "--isolation", "process", "-c", inPlaceProgram); err != nil || out != "no no no\n" {
						t.Errorf("user %s, %q: %v, %q, want no error and that nothing is reached", user, flags, err, out)
					}
				}
				if out, err := run(user, flags, "doctor"); err != nil || !strings.HasPrefix(out, "backend local namespace\n") || !strings.Contains(out, "A sandbox works here.") {
					t.Errorf("user %s: %v\n%s\nwant no error, \"backend local namespace\" and \"A sandbox works here.\"", user, err, out)
				}
				if out, err := run(user, masked, "doctor"); err != nil || !strings.Contains(out, "\nNO   proc ") || !strings.Contains(out, "A sandbox works here.") {
					t.Errorf("user %s, masked: %v\n%s\nwant no error, \"NO   proc\" and \"A sandbox works here.\"", user, err, out)
				}
				for _, flags := range [][]string{flags, masked} {
					if out, err := run(user, flags, "run", "--quiet", "-c", "print(1)"); err != nil || out != "1\n" {
						t.Errorf("user %s, %q: %v, %q, want no error and \"1\\n\"", user, flags, err, out)
					}
				}
				// There, /proc is the container's, closed but for links to files that code can read anyway.
				const look = `import glob, subprocess
subprocess.Popen(["sleep", "1000"])
print([f for f in glob.glob("/proc/[0-9]*/*") if not f.endswith("/exe") and not subprocess.run(["cat", f], capture_output=True).returncode])`
				if out, err := run(user, masked, "run", "--quiet", "-c", look); err != nil || out != "[]\n" {
					t.Errorf("user %s, masked: %v, %q, want no error and \"[]\\n\"", user, err, out)
				}
			}
			// Unlike root of the container, code of a sandbox cannot change the host's kernel settings.
			for _, flags := range [][]string{flags, masked} {
				if out, err := run("0", flags, "run", "--quiet", "-c", `import os; print(os.access("/proc/sys/kernel/core_pattern", os.W_OK))`); err != nil || out != "False\n" {
					t.Errorf("%q: /proc/sys in the sandbox can be written to: %v, %q, want no error and \"False\\n\"", flags, err, out)
				}
			}
			if e.Rootless {
				return // root there has too few users for what follows
			}
			// Code with users of its own enters another user namespace.
			for _, flags := range [][]string{flags, masked} {
				if out, err := run("0", flags, "run", "--quiet", "--sudo", "-c", "import os; print(os.getuid())"); err != nil || out != "1000\n" {
					t.Errorf("with sudo, %q: %v, %q, want no error and \"1000\\n\"", flags, err, out)
				}
			}
		})
	}
}

// inPlaceProgram tries to read what everybody in the container may, to make a socket, and to signal what is not of its sandbox.
const inPlaceProgram = `
import os, socket
def reached(f):
    try:
        f()
    except OSError:
        return "no"
    return "yes"
def signal():
    for pid in range(1, 1000):
        if pid != os.getpid():
            try:
                os.kill(pid, 0)
            except OSError:
                continue
            return
    raise OSError("none")
print(reached(lambda: open("/etc/passwd")), reached(socket.socket), reached(signal))
`

// incontainerDir has the command and the profile where every engine's user can read them.
func incontainerDir(t *testing.T) string {
	t.Helper()
	bin, err := testcommand.In(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "incontainer-test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for from, mode := range map[string]os.FileMode{filepath.Join(bin, "llmsandbox"): 0o755, "../../deploy/container/seccomp.json": 0o644} {
		content, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(from)), content, mode); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// engineCommand is the docker or the podman command for an engine.
func engineCommand(ctx context.Context, e *testengine.Engine, args ...string) *exec.Cmd {
	if e.Podman {
		return exec.CommandContext(ctx, "podman", append([]string{"--remote", "--url", e.Host}, args...)...)
	}
	cmd := exec.CommandContext(ctx, "docker", args...)
	cmd.Env = append(os.Environ(), "DOCKER_HOST="+e.Host)
	return cmd
}
