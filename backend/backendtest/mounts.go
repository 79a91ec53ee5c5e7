package backendtest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/test/abuse"
)

// mountTree makes a directory of the host that other users can enter, with what code could
// misuse, and a file with the canary beside it that links in it lead to.
func mountTree(t *testing.T) string {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("this machine cannot have what code could misuse")
	}
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	secret, tree := filepath.Join(dir, "secret"), filepath.Join(dir, "tree")
	err := errors.Join(
		os.WriteFile(secret, []byte(abuse.Canary), 0o644),
		os.MkdirAll(filepath.Join(tree, "sub"), 0o755),
		os.WriteFile(filepath.Join(tree, "file"), []byte("of the host"), 0o644),
		os.WriteFile(filepath.Join(tree, "sub", "file"), []byte("below"), 0o644),
		os.Symlink(secret, filepath.Join(tree, "absolute")),
		os.Symlink("../secret", filepath.Join(tree, "sibling")),
		os.Symlink(strings.Repeat("../", 30)+secret[1:], filepath.Join(tree, "relative")),
		makeFIFO(filepath.Join(tree, "fifo")),
	)
	if os.Geteuid() == 0 {
		id, rerr := os.ReadFile("/usr/bin/id")
		program, memory := filepath.Join(tree, "setuid"), filepath.Join(tree, "memory")
		err = errors.Join(err, rerr, os.WriteFile(program, id, 0o755), os.Chmod(program, 0o755|fs.ModeSetuid),
			makeMemoryDevice(memory), os.Chmod(memory, 0o666))
	}
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// treeState is all of a tree that code must not change.
func treeState(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s %v %s", path, info.Mode(), ownerAndTimes(info))
		if info.Mode().IsRegular() && info.Size() < 1<<20 {
			fmt.Fprintf(&b, " %q", hostFile(t, path))
		}
		b.WriteByte('\n')
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// mountAttack tries to write to what is mounted at the argument, to replace it, to leave it,
// and to gain something by what is in it. It prints DONE for what succeeds.
const mountAttack = `
import ctypes, fcntl, mmap, os, struct, subprocess, sys
at = sys.argv[1]
a, sub = at + '/file', at + '/sub'
libc = ctypes.CDLL(None, use_errno=True)

def call(result):
    if result < 0: raise OSError(ctypes.get_errno(), 'call')

def fd(path=a, flags=os.O_RDONLY): return os.open(path, flags, 0o644)

def mapped():
    m = mmap.mmap(fd(), 4, flags=mmap.MAP_SHARED, prot=mmap.PROT_READ | mmap.PROT_WRITE)
    m[0:1] = b'X'

def remount_in_namespaces():
    call(libc.unshare(0x10000000 | 0x20000))
    call(libc.mount(None, at.encode(), None, 32 | 4096, None))
    open(a, 'w').close()

tries = {
    'write': lambda: os.write(fd(a, os.O_WRONLY), b'X'),
    'append': lambda: os.write(fd(a, os.O_WRONLY | os.O_APPEND), b'X'),
    'open and truncate': lambda: fd(a, os.O_RDONLY | os.O_TRUNC),
    'truncate': lambda: os.truncate(a, 0),
    'create': lambda: fd(at + '/new', os.O_CREAT | os.O_WRONLY),
    'unnamed file': lambda: fd(at, os.O_TMPFILE | os.O_WRONLY),
    'mkdir': lambda: os.mkdir(at + '/new'),
    'unlink': lambda: os.unlink(a),
    'rmdir': lambda: (os.unlink(sub + '/file'), os.rmdir(sub)),
    'rename': lambda: os.rename(a, at + '/renamed'),
    'move out': lambda: os.rename(a, '/tmp/moved'),
    'move in': lambda: (open('/tmp/in', 'w').close(), os.rename('/tmp/in', at + '/in')),
    'chmod': lambda: os.chmod(a, 0o777),
    'chmod folder': lambda: os.chmod(at, 0o777),
    'chown': lambda: os.chown(a, os.getuid(), os.getgid()),
    'utime': lambda: os.utime(a, (1, 1)),
    'xattr': lambda: os.setxattr(a, 'user.x', b'x'),
    'hard link': lambda: os.link(a, at + '/linked'),
    'hard link out': lambda: os.link(a, '/tmp/linked'),
    'hard link by descriptor': lambda: os.link('/proc/self/fd/%d' % fd(), '/tmp/linked2', follow_symlinks=True),
    'symlink': lambda: os.symlink('x', at + '/symlink'),
    'fifo': lambda: os.mkfifo(at + '/newfifo'),
    'device': lambda: os.mknod(at + '/newdevice', 0o20666, os.makedev(1, 3)),
    'mmap': mapped,
    'mprotect': lambda: call(libc.mprotect(ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(mmap.mmap(fd(), 4, mmap.MAP_SHARED, mmap.PROT_READ)))), 4096, 3)),
    'set flags': lambda: fcntl.ioctl(fd(), 0x40086602, struct.pack('l', 0x40)),
    'allocate': lambda: os.posix_fallocate(fd(), 0, 1 << 20),
    'reopen': lambda: os.write(os.open('/proc/self/fd/%d' % fd(), os.O_WRONLY), b'X'),
    'remount': lambda: call(libc.mount(None, at.encode(), None, 32 | 4096, None)),
    'unmount': lambda: call(libc.umount2(at.encode(), 2)),
    'mount over': lambda: call(libc.mount(b'/tmp', at.encode(), None, 4096, None)),
    'remount in new namespaces': remount_in_namespaces,
    'replace the folder': lambda: os.rename(at, at + '.gone'),
    'remove the folder': lambda: os.rmdir(at),
    'open the memory device': lambda: fd(at + '/memory', os.O_RDWR),
    'read the memory device': lambda: os.read(fd(at + '/memory'), 1),
}
if sys.argv[2] == 'cow':
    tries = {k: v for k, v in tries.items() if 'mount' in k or 'the memory' in k or 'the folder' in k or 'out' in k and 'link' in k}
for name, attempt in tries.items():
    try: attempt()
    except (OSError, TypeError, ValueError): continue
    print('DONE', name)
for name in 'absolute', 'relative', 'sibling':
    try: print('DONE', name, open(at + '/' + name).read())
    except OSError: pass
try:
    user = {'user': 1234} if os.getuid() == 0 else {}
    if subprocess.run([at + '/setuid', '-u'], capture_output=True, **user).stdout.strip() == b'0': print('DONE setuid')
except OSError: pass
print('read', open(a).read(), open(sub + '/file').read())
`

// mountReadOnly attacks what is mounted, below the working directory and beside it.
func (s *suite) mountReadOnly(t *testing.T) {
	tree := mountTree(t)
	o := llmsandbox.Options{Resettable: true, Mounts: []llmsandbox.Mount{{Source: tree, Target: "/sandbox/tree"}, {Source: tree, Target: "/data/tree"},
		{Source: filepath.Join(tree, "file"), Target: "/data/one"}}}
	if why, lacks := s.Lacks[Mounts]; lacks {
		s.mountRefused(t, o, why)
		return
	}
	before := treeState(t, tree)
	sb := s.open(t, o)
	attacked := func() {
		t.Helper()
		for _, at := range []string{"/sandbox/tree", "/data/tree"} {
			res := run(t, sb, mountAttack, &llmsandbox.RunOptions{Args: []string{at, "ro"}})
			wantStatus(t, res, llmsandbox.StatusOK)
			if want := "read of the host below\n"; res.Stdout != want {
				t.Errorf("at %s: stdout %q, want %q\nstderr: %s", at, res.Stdout, want, res.Stderr)
			}
		}
		if now := treeState(t, tree); now != before {
			t.Errorf("the host's files were\n%sand are\n%s", before, now)
		}
	}
	attacked()
	shells(t, sb, "cat /data/one; echo x > /data/one || echo refused", "of the hostrefused\n")
	if c, found := sb.Capabilities().Get("mounts"); !found || !strings.Contains(c.Detail, "/data/one (ro)") || strings.Contains(c.Detail, tree) {
		t.Errorf("the control mounts is %+v, want the targets and no path of the host", c)
	}
	// What changes on the host is seen at once.
	later := filepath.Join(tree, "later")
	if err := os.WriteFile(later, []byte("new"), 0o644); err != nil {
		t.Fatal(err)
	}
	shells(t, sb, "cat tree/later /data/tree/later", "newnew")
	if err := os.Remove(later); err != nil {
		t.Fatal(err)
	}
	shells(t, sb, "cat tree/later || echo gone", "gone\n")
	before = treeState(t, tree)
	if err := sb.Reset(testContext(t)); err != nil {
		t.Errorf("reset: %v", err)
	}
	attacked()
	// A source that is gone harms nothing else.
	if err := os.RemoveAll(tree); err != nil {
		t.Fatal(err)
	}
	shells(t, sb, "cat tree/file 2>/dev/null; echo alive > alive; cat alive", "alive\n")
}

// mountCopyOnWrite writes to what is mounted.
func (s *suite) mountCopyOnWrite(t *testing.T) {
	tree := mountTree(t)
	const limit = 64 << 20
	sparse, big := filepath.Join(tree, "sparse"), filepath.Join(tree, "big")
	err := errors.Join(os.WriteFile(sparse, nil, 0o644), os.Truncate(sparse, 100<<30), os.WriteFile(big, make([]byte, limit+limit/2), 0o644))
	if err != nil {
		t.Fatal(err)
	}
	o := llmsandbox.Options{Resettable: true, Limits: llmsandbox.Limits{Disk: limit}, Mounts: []llmsandbox.Mount{{Source: tree, Target: "/sandbox/tree", Mode: llmsandbox.MountCopyOnWrite}}}
	if why, lacks := s.Lacks[CopyOnWriteMounts]; lacks {
		s.mountRefused(t, o, why)
		return
	}
	before := treeState(t, tree)
	sb := s.open(t, o)
	res := run(t, sb, mountAttack, &llmsandbox.RunOptions{Args: []string{"/sandbox/tree", "cow"}})
	wantStatus(t, res, llmsandbox.StatusOK)
	if want := "read of the host below\n"; res.Stdout != want {
		t.Errorf("stdout %q, want %q\nstderr: %s", res.Stdout, want, res.Stderr)
	}
	shells(t, sb, "cd tree; echo new > new; cat new; rm sub/file && echo mine > sub/file; cat sub/file; mv file moved; cat moved; chmod 777 . sub; ls file 2>/dev/null", "new\nmine\nof the host")
	// Copies of what is too large end with an error, or take no place.
	res = run(t, sb, `
import os, shutil
for name in 'sparse', 'big':
    try:
        with open('tree/' + name, 'r+b') as f: f.write(b'x')
    except OSError as e: print(name, e.strerror)
try: shutil.copyfile('tree/big', 'tree/copied')
except OSError as e: print('copied', e.strerror)
print(sum(os.lstat(os.path.join(d, f)).st_blocks * 512 for d, _, names in os.walk('.') for f in names if f != 'big') <= 64 << 20)
`, nil)
	wantStatus(t, res, llmsandbox.StatusOK)
	if !strings.Contains(res.Stdout, "copied No space left on device\n") || !strings.HasSuffix(res.Stdout, "True\n") {
		t.Errorf("stdout %q, want that a copy did not fit, and no more written than the limit", res.Stdout)
	}
	switch err := sb.Reset(testContext(t)); {
	case s.options(o).WritableRoot && err == nil: // it is created again
		shells(t, sb, "cd tree; cat file sub/file; ls new moved 2>/dev/null", "of the hostbelow")
	case !errors.Is(err, llmsandbox.ErrUnsupported):
		t.Errorf("reset: %v, want llmsandbox.ErrUnsupported, as it cannot empty the copy", err)
	}
	if now := treeState(t, tree); now != before {
		t.Errorf("the host's files were\n%sand are\n%s", before, now)
	}
}

// mountRefused wants mounts to be refused with what to do instead.
func (s *suite) mountRefused(t *testing.T, o llmsandbox.Options, why string) {
	t.Helper()
	t.Logf("declared to lack mounts: %s", why)
	ctx := testContext(t)
	o = s.options(o)
	sb, err := llmsandbox.Open(ctx, &o)
	if err == nil {
		err = sb.Close()
		t.Errorf("it opened, want an error (close: %v)", err)
	} else if !errors.Is(err, llmsandbox.ErrUnsupported) || !strings.Contains(err.Error(), "--file") {
		t.Errorf("open: %v, want llmsandbox.ErrUnsupported with a remedy", err)
	}
}

// mountInvalid asks for what no backend mounts.
func (s *suite) mountInvalid(t *testing.T) {
	s.has(t, Mounts)
	tree := mountTree(t)
	socket := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink("/proc/self", socket); err != nil {
		t.Fatal(err)
	}
	for _, source := range []string{"/", "/proc", "/proc/self/cwd", "/sys/kernel", "/dev", "/dev/null", "/run", "/nowhere", socket, tree + "/fifo", tree + "/../tree/fifo"} {
		o := s.options(llmsandbox.Options{Mounts: []llmsandbox.Mount{{Source: source, Target: "/data"}}})
		sb, err := llmsandbox.Open(testContext(t), &o)
		if err == nil {
			err = sb.Close()
			t.Errorf("%s is mounted, want an error (close: %v)", source, err)
		} else if !errors.Is(err, llmsandbox.ErrInvalid) {
			t.Errorf("%s: %v, want llmsandbox.ErrInvalid", source, err)
		}
	}
}

// shells wants what a command prints on its standard output.
func shells(t *testing.T, sb *llmsandbox.Sandbox, script, want string) {
	t.Helper()
	res, err := sb.Shell(testContext(t), script, nil)
	if err != nil || res.Stdout != want {
		t.Errorf("%s: %v, stdout %q, want %q\nstderr: %s", script, err, res.Stdout, want, res.Stderr)
	}
}
