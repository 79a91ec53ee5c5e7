package ociimage

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/testimage"
)

// overlayScript mounts the layers over each other and runs the image's own programs.
const overlayScript = `
set -e
mount -t overlay overlay -o "$OPTS" "$MNT"
exec chroot "$MNT" /bin/sh -c 'ls /etc/gone /opt/old 2>&1; cat /opt/new /srv/motd; echo x > /srv/x; cat /srv/x; ls /opt'
`

// The kernel agrees that the layers are what doc.go says, for root and in a user
// namespace, with and without userxattr as far as it is allowed.
func TestOverlay(t *testing.T) {
	img := resolve(t, newStore(t), testimage.Save(t, "127.0.0.1/busybox:1", testimage.Busybox(t, nil)), Options{})
	if _, err := os.Lstat(filepath.Join(img.Layers[0], "etc/gone")); err != nil {
		t.Fatal(err)
	}
	root := os.Geteuid() == 0
	for _, c := range []struct {
		name   string
		opts   string
		userns bool
	}{
		{"root", "", false},
		{"root userxattr", ",userxattr", false},
		{"user namespace", ",userxattr", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !c.userns && !root {
				t.Skip("only root can mount outside a user namespace")
			}
			work := t.TempDir()
			for _, d := range []string{"up", "work", "mnt"} {
				if err := os.Mkdir(filepath.Join(work, d), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			lower := img.Layers[1] + ":" + img.Layers[0]
			cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", overlayScript)
			cmd.Env = append(os.Environ(), "PATH="+os.Getenv("PATH")+":/usr/sbin:/sbin", "MNT="+work+"/mnt", "OPTS=lowerdir="+lower+",upperdir="+work+"/up,workdir="+work+"/work"+c.opts)
			cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
			if c.userns {
				cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
				cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
				cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
			} else {
				cmd.SysProcAttr.Unshareflags = syscall.CLONE_NEWNS // also makes the mounts private
			}
			out, err := cmd.CombinedOutput()
			if errors.Is(err, fs.ErrPermission) || strings.Contains(string(out), "permission denied") {
				testimage.Unavailable(t, "this machine does not let this user mount an overlay: "+string(out))
			}
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			got := string(out)
			for _, gone := range []string{"/etc/gone: No such file", "/opt/old: No such file"} {
				if !strings.Contains(got, gone) {
					t.Errorf("no %q in %q", gone, got)
				}
			}
			if !strings.HasSuffix(got, "the upper layer's\nfrom the image\nx\nnew\n") {
				t.Errorf("got %q, want it to end in \"the upper layer's\\nfrom the image\\nx\\nnew\\n\"", got)
			}
		})
	}
}

// A whole distribution: thousands of files, hard links, odd modes.
func TestPythonImage(t *testing.T) {
	if os.Getenv("LLMSANDBOX_TEST_PYTHON_IMAGE") == "" {
		t.Skip("set LLMSANDBOX_TEST_PYTHON_IMAGE=1; makes the image once, in about half a minute")
	}
	img := resolve(t, newStore(t), testimage.Python(t), Options{})
	cmd := exec.CommandContext(t.Context(), "/usr/sbin/chroot", img.Layers[0], "/usr/bin/python3", "-c", "import ssl, sys; print(sys.version_info[0])")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}}
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "3\n" {
		t.Errorf("%v: %s, want no error, out = \"3\\n\"", err, out)
	}
}
