//go:build linux

package guest_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// A place is a directory that code may write to, and one of the same user that it may only read.
type place struct{ work, outside string }

func newPlace(t *testing.T, uid uint32) place {
	t.Helper()
	top, err := os.MkdirTemp("", "outside")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(top) })
	p := place{filepath.Join(top, "work"), filepath.Join(top, "outside")}
	for _, dir := range []string{p.work, p.outside, filepath.Join(p.outside, "d")} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"f", "d/f"} {
		if err := os.WriteFile(filepath.Join(p.outside, file), []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("f", filepath.Join(p.outside, "l")); err != nil {
		t.Fatal(err)
	}
	os.Chmod(top, 0o755)
	if err := filepath.Walk(top, func(path string, _ os.FileInfo, _ error) error { return os.Lchown(path, int(uid), int(uid)) }); err != nil {
		t.Fatal(err)
	}
	return p
}

// state is all that could change of what is outside.
func (p place) state(t *testing.T) string {
	t.Helper()
	var out strings.Builder
	err := filepath.Walk(filepath.Dir(p.outside), func(path string, _ os.FileInfo, err error) error {
		if path == p.work {
			return filepath.SkipDir
		}
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return err
		}
		fmt.Fprintln(&out, path, st.Mode, st.Uid, st.Gid, st.Nlink, st.Mtim, st.Ctim)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func startShared(t *testing.T, env ...string) (*testAgent, place) {
	t.Helper()
	uid := outsideUIDs()["shared"]
	p := newPlace(t, uid)
	return startOutside(t, uid, append(env, envWork+"="+p.work)...), p
}

func (p place) python(script string, args ...string) agentproto.StartRequest {
	script = "import ctypes, os, sys, time\nwork, outside = sys.argv[1:3]\nos.chdir(work)\nC = ctypes.CDLL(None, use_errno=True)\n" + script
	return agentproto.StartRequest{Argv: append([]string{"/usr/bin/python3", "-c", script, p.work, p.outside}, args...),
		Env: append(sh("").Env, "HOME="+p.work, "TMPDIR="+p.work), Dir: p.work}
}

// attributes are all ways to change a file's attributes, of a file, a directory, a link and a descriptor of it.
const attributes = `
n = dict(chmod=90, fchmod=91, chown=92, fchown=93, lchown=94, utime=132, utimes=235, futimesat=261) if os.uname().machine == "x86_64" else {}
def call(nr, *args):
  if C.syscall(nr, *[ctypes.c_long(a) if isinstance(a, int) else a for a in args]) < 0:
    e = ctypes.get_errno(); raise OSError(e, os.strerror(e))
now, null = (ctypes.c_long * 4)(1000, 0, 1000, 0), None
def ways(f, name):
  "what to try on f, which is name in the directory d"
  me, mine, d = os.getuid(), os.getgid(), os.open(os.path.dirname(f), os.O_RDONLY)
  r, o = os.open(f, os.O_RDONLY), os.open(f, os.O_PATH)
  b = os.fsencode(f)
  yield "chmod", lambda: os.chmod(f, 0o700)
  yield "chmod of a link", lambda: (os.symlink(f, "link"), os.chmod("link", 0o700)) if not os.path.lexists("link") else os.chmod("link", 0o700)
  yield "chmod of a relative path", lambda: os.chmod(os.path.relpath(f), 0o700)
  yield "chmod of a descriptor in proc", lambda: os.chmod("/proc/self/fd/%d" % r, 0o700)
  yield "chmod of another in proc", lambda: os.chmod("/dev/fd/%d" % o, 0o700)
  yield "chmod below a descriptor", lambda: os.chmod(name, 0o700, dir_fd=d)
  yield "fchmod", lambda: os.fchmod(r, 0o700)
  yield "fchmodat2 of a descriptor", lambda: call(452, o, b"", 0o700, 0x1000)
  yield "fchmodat2", lambda: call(452, d, os.fsencode(name), 0o700, 0x100)
  yield "chown", lambda: os.chown(f, me, mine)
  yield "lchown", lambda: os.lchown(f, me, -1)
  yield "fchown", lambda: os.fchown(r, -1, mine)
  yield "fchownat of a descriptor", lambda: call(260 if n else 54, o, b"", me, mine, 0x1000)
  yield "utime", lambda: os.utime(f, (1, 1))
  yield "utime now", lambda: os.utime(f)
  yield "futimens", lambda: os.utime(r, ns=(1, 1))
  yield "utimensat of a link", lambda: os.utime(f, (1, 1), follow_symlinks=False)
  yield "utimensat of a descriptor", lambda: call(280 if n else 88, o, b"", now, 0x1000)
  if n:
    yield "old chmod", lambda: call(n["chmod"], b, 0o700)
    yield "old chown", lambda: call(n["chown"], b, me, mine)
    yield "old utime", lambda: call(n["utime"], b, now)
    yield "old utime now", lambda: call(n["utime"], b, null)
    yield "old utimes", lambda: call(n["utimes"], b, now)
    yield "old futimesat", lambda: call(n["futimesat"], d, os.fsencode(name), now)
`

func TestAttributesOutside(t *testing.T) {
	a, p := startShared(t)
	before := p.state(t)
	r := a.run(p.python(attributes + `
for f in ["f", "d", "d/f", "l"]:
  for what, way in ways(os.path.join(outside, f), os.path.basename(f)):
    try: way(); print("done:", f, what)
    except OSError as e:
      if e.errno != 1: print(e, f, what)
  os.unlink("link")
for what, way in [
  ("link", lambda: os.link(outside + "/f", "hard")), ("setxattr", lambda: os.setxattr(outside + "/f", "user.x", b"x")),
  ("rename", lambda: os.rename(outside + "/d", "d")), ("bind mount", lambda: os.chmod("/proc/self/cwd/../outside/f", 0o700)),
  ("proc root", lambda: os.chmod("/proc/self/root" + outside + "/f", 0o700)),
]:
  try: way(); print("done:", what)
  except OSError: pass
print("end")
`))
	if r.out != "end\n" || r.exit.Code != 0 {
		t.Errorf("%+v, want out = \"end\\n\"", r)
	}
	if after := p.state(t); after != before {
		t.Errorf("outside has changed from\n%sto\n%s", before, after)
	}
}

func TestAttributesInside(t *testing.T) {
	a, p := startShared(t)
	r := a.run(p.python(attributes + `
os.mkdir("d"); open("d/f", "w").close(); open("f", "w").close()
for f in ["f", "d/f", "d"]:
  f = os.path.join(work, f)
  for what, way in ways(f, os.path.basename(f)):
    os.chmod(f, 0o600 if os.path.isfile(f) else 0o750); os.utime(f, (5, 5))
    before = os.stat(f)
    try: way()
    except OSError as e: print(e, f, what); continue
    after = os.stat(f)
    if "ch" in what and "own" not in what and after.st_mode & 0o777 != 0o700: print(what, f, oct(after.st_mode))
    if "time" in what and after.st_mtime == before.st_mtime: print(what, f, after.st_mtime)
  os.unlink("link")
t = os.open(".", os.O_TMPFILE | os.O_RDWR); os.fchmod(t, 0o640)
os.symlink("nowhere", "l"); os.utime("l", (7, 7), follow_symlinks=False); os.lchown("l", os.getuid(), -1)
if os.lstat("l").st_mtime != 7: print("time of a link", os.lstat("l"))
os.chmod("d", 0o2755)
call(n["utimes"], b"f", (ctypes.c_long * 4)(3, 4, 5, 6)) if n else os.utime("f", ns=(3000004000, 5000006000))
if os.stat("f").st_mtime_ns != 5000006000: print("times", os.stat("f"))
def fails(errno, way, *args):
  try: way(*args); print("no error", errno, args)
  except OSError as e:
    if e.errno != errno: print(e, errno, args)
fails(1, os.chmod, "f", 0o4755); fails(1, os.chmod, "f", 0o2755); fails(1, os.chmod, "d", 0o4755)
fails(1, os.chown, "f", 0, -1); fails(1, os.chown, "f", -1, 0)
fails(1, os.open, "set", os.O_CREAT | os.O_WRONLY, 0o4755)
fails(2, os.chmod, "no", 0o755); fails(2, os.chmod, "", 0o755); fails(20, os.chmod, "f/x", 0o755); fails(9, os.fchmod, 99, 0o755)
fails(36, os.chmod, "x" * 5000, 0o755); fails(40, lambda: (os.symlink("a", "b"), os.symlink("b", "a"), os.chmod("a", 0o755)))
fails(14, call, 268 if n else 53, -100, 8, 0o755); fails(22, call, 452, -100, b"f", 0o755, 1)
fails(95, os.setxattr, "f", "user.x", b"x")
C.prctl(4, 0); fails(1, os.chmod, "f", 0o700); C.prctl(4, 1); os.chmod("f", 0o700) # what cannot be looked into
print("end")
`))
	if r.out != "end\n" || r.exit.Code != 0 {
		t.Errorf("%+v, want out = \"end\\n\"", r)
	}
}

// TestAttributePrograms: what programs do to what they have made works.
func TestAttributePrograms(t *testing.T) {
	a, p := startShared(t)
	for name, script := range map[string]string{
		"tar":     "mkdir a; echo x > a/f; chmod 750 a/f; touch -d 2001-02-03 a/f; tar cf t.tar a; rm -r a; tar xpf t.tar; stat -c %a-%y a/f | grep 750-2001",
		"cp":      "echo x > f; chmod 751 f; touch -d 2001-02-03 f; cp -a f g; cp -p f h; mkdir -p d/e; cp -a d i; stat -c %a-%y g h | grep -c 751-2001 | grep 2",
		"cp out":  "cp -a " + p.outside + " copy; cp -p /etc/passwd copy/; test -x copy/d",
		"shutil":  "/usr/bin/python3 -c 'import shutil, tempfile; open(\"f\", \"w\").write(\"x\"); shutil.copy2(\"f\", \"g\"); shutil.copytree(\"/usr/lib/python3/dist-packages\", \"tree\", ignore=lambda d, n: n[5:]); tempfile.mkdtemp()'",
		"git":     "git init -q r && cd r && echo x > f && chmod +x f && git add f && git -c user.name=a -c user.email=a@b commit -qm m && git gc -q && git clone -q . ../c && test -x ../c/f",
		"install": "echo x > f; install -m 711 f g; install -d -m 700 d; chmod -R go-rwx d; stat -c %a g | grep 711",
		"pip":     "/usr/bin/python3 -m venv v && v/bin/pip list",
		"zip":     "/usr/bin/python3 -m zipfile -c z.zip /etc/passwd && /usr/bin/python3 -m zipfile -e z.zip out",
		"bash":    "bash -c 'umask 077; touch f; test -O f; touch -r /etc/passwd f; mktemp -d -p .'",
		"signals": "/usr/bin/python3 -c 'import os, signal; signal.signal(signal.SIGALRM, lambda *a: None); signal.siginterrupt(signal.SIGALRM, False); signal.setitimer(signal.ITIMER_REAL, .0002, .0002); open(\"f\", \"w\").close(); [os.chmod(\"f\", 0o600) for i in range(3000)]; signal.setitimer(signal.ITIMER_REAL, 0)'",
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(p.work, strings.ReplaceAll(name, " ", "-"))
			req := sh("set -e; mkdir " + dir + "; cd " + dir + "; " + script)
			req.Env = append(req.Env, "TMPDIR="+p.work)
			if r := a.run(req); r.exit.Code != 0 || !r.exit.Known {
				t.Errorf("%+v, want Code = 0", r)
			}
		})
	}
}

// TestAttributeRaces changes what a path is while it is looked at: its bytes, the links and the directories on it.
func TestAttributeRaces(t *testing.T) {
	a, p := startShared(t)
	program := compileRace(t, p)
	before := p.state(t)
	for _, kind := range []string{"buffer", "link", "directory", "descriptor", "move"} {
		t.Run(kind, func(t *testing.T) {
			r := a.run(agentproto.StartRequest{Argv: []string{program, kind, p.work + "/" + kind, p.outside}, Env: sh("").Env, Dir: p.work})
			if r.exit.Code != 0 || !strings.HasSuffix(r.out, "end\n") {
				t.Errorf("%+v, want out ending in \"end\\n\"", r)
			}
			t.Log(r.out)
			if after := p.state(t); after != before {
				t.Errorf("outside has changed from\n%sto\n%s", before, after)
			}
		})
	}
}

func compileRace(t *testing.T, p place) string {
	t.Helper()
	file, program := filepath.Join(p.work, "race.c"), filepath.Join(p.work, "race")
	if err := os.WriteFile(file, []byte(raceSource), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("gcc", "-static", "-O1", "-pthread", "-o", program, file).CombinedOutput(); err != nil {
		need(t, fmt.Sprintf("gcc: %v\n%s", err, out))
	}
	return program
}

const raceSource = `
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
static char path[4096], in[4096], out[4096], a[4096], b[4096];
static const char *kind; static int fd = 50; static volatile int stop;
static void *swap(void *x) {
	int fin = open(in, O_RDONLY), fout = open(out, O_RDONLY);
	while (!stop) {
		if (!strcmp(kind, "buffer")) { strcpy(path, in); strcpy(path, out); }
		else if (!strcmp(kind, "descriptor")) { dup2(fin, fd); dup2(fout, fd); }
		else if (!strcmp(kind, "move")) { rename(a, b); rename(b, a); }
		else syscall(SYS_renameat2, AT_FDCWD, a, AT_FDCWD, b, 2 /* RENAME_EXCHANGE */);
	}
	return 0;
}
int main(int n, char **v) {
	kind = v[1];
	mkdir(v[2], 0755); chdir(v[2]);
	sprintf(in, "%s/f", v[2]); sprintf(out, "%s/f", v[3]); sprintf(a, "%s/a", v[2]); sprintf(b, "%s/b", v[2]);
	close(open(in, O_CREAT | O_WRONLY, 0644));
	strcpy(path, in);
	if (!strcmp(kind, "link")) { symlink(in, a); symlink(out, b); strcpy(path, a); }
	if (!strcmp(kind, "directory")) { mkdir(a, 0755); sprintf(path, "%s/f", a); close(open(path, O_CREAT | O_WRONLY, 0644)); symlink(v[3], b); }
	if (!strcmp(kind, "move")) { mkdir(a, 0755); sprintf(path, "%s/../../../outside/f", a); }
	dup2(open(in, O_RDONLY), fd);
	pthread_t t[2]; pthread_create(&t[0], 0, swap, 0); pthread_create(&t[1], 0, swap, 0);
	int done = 0, denied = 0, other = 0;
	for (int i = 0; i < 4000; i++) {
		int r = !strcmp(kind, "descriptor") ? fchmod(fd, 0700) : i % 2 ? chmod(path, 0700) : utimensat(AT_FDCWD, path, 0, 0);
		if (!r) done++; else if (errno == EPERM) denied++; else other++;
	}
	stop = 1; pthread_join(t[0], 0); pthread_join(t[1], 0);
	printf("%d done, %d denied, %d other\nend\n", done, denied, other);
}
`

// TestConnectToProxyOnly: of an address a Landlock rule compares the port.
func TestConnectToProxyOnly(t *testing.T) {
	proxy, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close()
	port := proxy.Addr().(*net.TCPAddr).Port
	elsewhere, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.2:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	defer elsewhere.Close()
	go func() {
		for {
			conn, err := proxy.Accept()
			if err != nil {
				return
			}
			conn.Write([]byte("proxy"))
			conn.Close()
		}
	}()
	for name, uid := range outsideUIDs() {
		t.Run(name, func(t *testing.T) {
			user := uid
			if user == 0 {
				user = ownUID
			}
			p := newPlace(t, user)
			a := startOutside(t, uid, envWork+"="+p.work, fmt.Sprintf("%s=%d", envPort, port))
			r := a.run(p.python(`
import asyncio, fcntl, socket
port = int(sys.argv[3])
def get(address, family=socket.AF_INET, **how):
  s = socket.socket(family); s.settimeout(how.get("timeout"))
  try: s.connect(address); out = s.recv(9).decode()
  except OSError as e: out = e.errno
  if fcntl.fcntl(s, fcntl.F_GETFD) != 1 or s.family != family: print("flags")
  return out
print(get(("127.0.0.1", port)), get(("127.0.0.1", port), timeout=9), get(("::ffff:127.0.0.1", port), socket.AF_INET6))
print(get(("127.0.0.2", port)), get(("127.0.0.1", 1)), get(("192.0.2.1", port)), get(("::1", port), socket.AF_INET6))
async def main():
  r, w = await asyncio.open_connection("127.0.0.1", port); print((await r.read()).decode())
asyncio.run(main())
r, w = os.pipe()
for fd in [r, 99]:
  b = (ctypes.c_ubyte * 16)(2, 0, port >> 8, port & 255, 127, 0, 0, 1)
  print(C.connect(fd, b, 16), ctypes.get_errno())
s = socket.socket()
print(C.connect(s.fileno(), b, 1), ctypes.get_errno(), C.connect(s.fileno(), 8, 16), ctypes.get_errno())
try: s.sendto(b"x", socket.MSG_FASTOPEN, ("127.0.0.2", port))
except OSError as e: print(e.errno)
`, fmt.Sprint(port)))
			want := "proxy proxy proxy\n101 111 101 101\nproxy\n-1 88\n-1 9\n-1 22 -1 14\n95\n"
			if r.out != want {
				t.Errorf("%+v, want out = %q", r, want)
			}
		})
	}
}
