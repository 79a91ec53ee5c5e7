//go:build linux

package guest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
	"github.com/llmsandbox/llmsandbox/internal/guest"
)

// envWatch is the watch of an agent that envOutside makes: the limits, and one directory.
const envWatch = "LLMSANDBOX_TEST_WATCH"

func watchOf(text string) *guest.Watch {
	w := guest.Watch{Dirs: []string{""}}
	if n, err := fmt.Sscan(text, &w.Memory, &w.Disk, &w.Dirs[0]); n < 3 || err != nil {
		return nil
	}
	return &w
}

// eachWatched tries an agent with these limits, and a directory for its code.
func eachWatched(t *testing.T, memory, disk uint64, f func(t *testing.T, a *testAgent, dir string)) {
	dir := t.TempDir()
	for _, name := range []string{filepath.Dir(dir), dir} {
		if err := os.Chmod(name, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for name, uid := range outsideUIDs() {
		t.Run(name, func(t *testing.T) {
			f(t, startOutside(t, uid, envWork+"="+dir, fmt.Sprintf("%s=%d %d %s", envWatch, memory, disk, dir)), dir)
		})
	}
}

// script is a request for a program that has these helpers. What waits does so until it is killed.
func script(dir, text string) agentproto.StartRequest {
	return agentproto.StartRequest{
		Argv: []string{"python3", "-c", `import ctypes, mmap, os, signal, sys, time
MIB = 1 << 20
def take(mib):  # so much memory
  b = bytearray(mib*MIB)
  for i in range(0, len(b), 4096): b[i] = 1
  return b
def busy(seconds):
  end = time.monotonic() + seconds
  while time.monotonic() < end: time.sleep(0.01)
` + text},
		Env: []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/tmp"},
		Dir: dir,
	}
}

const watchedMemory = 200 << 20

// growing are ways to have more memory than 200 MiB.
var growing = map[string]string{
	"one as fast as it can": `
x = []
while True: x.append(b"x"*(64*MIB))`,
	"slowly": `
x = []
while True: x.append(take(1))`,
	"shared memory": `
m = mmap.mmap(-1, 4096*MIB)
for i in range(0, len(m), 4096): m[i] = 1
signal.pause()`,
	"untraceable": `
ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
x = take(4096)
signal.pause()`,
	"a thread that outlives the first": `
import threading
def grow():
  x = [take(64) for i in range(64)]
  signal.pause()
threading.Thread(target=grow).start()
ctypes.CDLL(None).syscall(60 if os.uname().machine == "x86_64" else 93, 0)`,
	"tables of pages": `
m = [mmap.mmap(-1, 1 << 40, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ) for i in range(16)]
for x in m:
  x.madvise(mmap.MADV_NOHUGEPAGE)
  for i in range(0, len(x), 2*MIB): x[i]
signal.pause()`,
}

func TestWatchMemory(t *testing.T) {
	eachWatched(t, watchedMemory, 0, func(t *testing.T, a *testAgent, dir string) {
		for name, text := range growing {
			r := a.run(script(dir, text))
			if e := r.exit; e.Signal != 9 || e.Reason != agentproto.NotKilled || !e.OOMKnown || e.OOMKills != 1 {
				t.Errorf("%s: %+v, want Signal = 9, Reason = NotKilled, OOMKnown true, OOMKills = 1", name, r)
			}
			t.Logf("%s: had up to %d MiB of %d, after %d ms", name, r.exit.PeakRSS>>20, watchedMemory>>20, r.exit.WallMicros/1000)
		}
		r := a.run(script(dir, "x = take(100)\nsys.exit(7)"))
		if e := r.exit; e.Code != 7 || !e.OOMKnown || e.OOMKills != 0 {
			t.Errorf("one that has less: %+v, want Code = 7, OOMKnown true, OOMKills = 0", r)
		}
	})
}

// TestWatchMemoryOfSeveral: processes that have too much together lose one of them, the largest.
func TestWatchMemoryOfSeveral(t *testing.T) {
	eachWatched(t, watchedMemory, 0, func(t *testing.T, a *testAgent, dir string) {
		r := a.run(script(dir, `
children = {}
for mib in 60, 40, 40, 40, 40:
  r, w = os.pipe()
  pid = os.fork()
  if pid == 0:
    x = take(mib)
    os.close(w)
    signal.pause()
  os.close(w)
  if mib == 60: os.read(r, 1)  # it has all before the others begin
  children[pid] = mib
pid, status = os.wait()
print(children.pop(pid), os.WTERMSIG(status), flush=True)
for pid in children: os.kill(pid, signal.SIGTERM)
print(sorted(os.WTERMSIG(os.wait()[1]) for pid in children))
sys.exit(3)`))
		if r.out != "60 9\n[15, 15, 15, 15]\n" || r.exit.Code != 3 || r.exit.OOMKills != 1 {
			t.Errorf("%+v, want out = \"60 9\\n[15, 15, 15, 15]\\n\", Code = 3, OOMKills = 1", r)
		}
	})
}

// TestWatchMemoryOfMany: of processes that have far too much together, as many are killed as that takes.
func TestWatchMemoryOfMany(t *testing.T) {
	eachWatched(t, watchedMemory, 0, func(t *testing.T, a *testAgent, dir string) {
		r := a.run(script(dir, `
pids = set()
for i in range(12):
  pid = os.fork()
  if pid == 0:
    x = take(50)
    signal.pause()
  pids.add(pid)
for i in range(9):
  pid, status = os.wait()
  assert os.WTERMSIG(status) == 9
  pids.remove(pid)
time.sleep(0.2)
for pid in pids: os.kill(pid, signal.SIGTERM)
print([os.WTERMSIG(os.wait()[1]) for pid in pids])`))
		if r.out != "[15, 15, 15]\n" || r.exit.Code != 0 || r.exit.OOMKills != 9 {
			t.Errorf("%+v, want out = \"[15, 15, 15]\\n\", Code = 0, OOMKills = 9", r)
		}
	})
}

// harmless are programs that have less than 200 MiB, whatever it looks like.
var harmless = map[string]string{
	"memory shared by fork": `
x = take(100)
pids = [os.fork() for i in range(1)]
if pids[0]:
  pids += [p for p in (os.fork() for i in range(3))]
busy(1)
if 0 in pids: os._exit(0)
for p in pids: assert os.wait()[1] == 0`,
	"a child without a program": `
os.mkfifo("fifo")
if os.fork() == 0:
  time.sleep(1.5)
  open("fifo", "w").close()
  os._exit(0)
x = take(120)
# The child that opens it has this one's memory.
pid = os.posix_spawn("/bin/true", ["true"], {}, file_actions=[(os.POSIX_SPAWN_OPEN, 9, "fifo", os.O_RDONLY, 0)])
for i in range(2): assert os.wait()[1] == 0
os.unlink("fifo")`,
	"a mapped file": `
with open("mapped", "wb") as f:
  for i in range(300): f.write(b"x"*MIB)
with open("mapped", "rb") as f: m = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)
for i in range(0, len(m), 4096): m[i]
busy(0.5)
os.unlink("mapped")`,
	"reserved memory": `
m = mmap.mmap(-1, 1 << 40, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ)
busy(0.5)`,
}

func TestWatchMemoryBelow(t *testing.T) {
	eachWatched(t, watchedMemory, 0, func(t *testing.T, a *testAgent, dir string) {
		for name, text := range harmless {
			if r := a.run(script(dir, text)); r.exit.Signal != 0 || r.exit.Code != 0 || r.exit.OOMKills != 0 {
				t.Errorf("%s: %+v, want Code = 0, OOMKills = 0", name, r)
			}
		}
	})
}

const watchedDisk = 64 << 20

// filling are ways to take more than 64 MiB of the disk.
var filling = map[string]string{
	"a large file": `
with open("large", "wb") as f:
  for i in range(1024): f.write(b"x"*MIB)
signal.pause()`,
	"many files": `
for i in range(6000): open(f"many{i}", "w").close()
signal.pause()`,
	"files in the depth": `
for i in range(300):
  os.mkdir("d"); os.chdir("d")
  with open("f", "wb") as f: f.write(b"x"*MIB)
signal.pause()`,
	"a file without a name": `
with open("none", "wb") as f:
  os.unlink("none")
  for i in range(128): f.write(b"x"*MIB)
  f.flush()
  signal.pause()`,
	"a file of a thread": `
import threading
def fill():
  libc = ctypes.CDLL(None)
  assert libc.unshare(0x400) == 0  # its own descriptors
  with open("thread", "wb") as f:
    os.unlink("thread")
    for i in range(128): f.write(b"x"*MIB)
    f.flush()
    signal.pause()
threading.Thread(target=fill).start()
ctypes.CDLL(None).syscall(60 if os.uname().machine == "x86_64" else 93, 0)`,
	"a file in memory": `
f = os.memfd_create("x")
for i in range(128): os.write(f, b"x"*MIB)
signal.pause()`,
}

func TestWatchDisk(t *testing.T) {
	eachWatched(t, 0, watchedDisk, func(t *testing.T, a *testAgent, dir string) {
		for name, text := range filling {
			p, err := a.client.Start(t.Context(), sh("exec sleep 600"))
			if err != nil {
				t.Fatal(err)
			}
			r := a.run(script(dir, text))
			if e := r.exit; e.Signal != 9 || e.Reason != agentproto.KilledDiskLimit {
				t.Errorf("%s: %+v, want Signal = 9, Reason = KilledDiskLimit", name, r)
			}
			other, err := collect(t.Context(), p)
			if err != nil || other.exit.Reason != agentproto.KilledDiskLimit {
				t.Errorf("%s: what ran meanwhile: %+v, %v, want Reason = KilledDiskLimit", name, other, err)
			}
			t.Logf("%s: after %d ms", name, r.exit.WallMicros/1000)
			// What is there is more than may be: it can be removed, also if it grows by what a file system adds to it when it
			// writes it out.
			r = a.run(script(dir, `
import shutil
for n in os.listdir("."):
  if os.path.isfile(n) and os.access(n, os.W_OK):
    with open(n, "ab") as f: f.write(b"x"*8192)
    break
time.sleep(0.5)
for n in os.listdir("."):
  if os.path.isdir(n): shutil.rmtree(n)
  else: os.unlink(n)
time.sleep(0.5)`))
			if r.exit.Code != 0 || r.exit.Signal != 0 {
				t.Fatalf("after %s: %+v, want Code = 0", name, r) // too much is still there for all that follows
			}
		}
		r := a.run(script(dir, `
with open("sparse", "wb") as f: f.truncate(1 << 40)
with open("once", "wb") as f: f.write(b"x"*40*MIB)
for i in range(10): os.link("once", f"again{i}")
time.sleep(1)`))
		if r.exit.Code != 0 || r.exit.Signal != 0 {
			t.Errorf("what takes less: %+v, want Code = 0", r)
		}
	})
}

// TestWatchResumes: what was stopped to be looked at goes on, but not what the code has stopped itself.
func TestWatchResumes(t *testing.T) {
	eachWatched(t, watchedMemory, 0, func(t *testing.T, a *testAgent, dir string) {
		r := a.run(script(dir, `
stopped = os.fork()
if stopped == 0:
  os.kill(os.getpid(), signal.SIGSTOP)
  os._exit(0)
os.waitpid(stopped, os.WUNTRACED)
if os.fork() == 0:
  x = take(1000)
  signal.pause()
print(os.WTERMSIG(os.wait()[1]), open(f"/proc/{stopped}/stat").read().split()[2])
os.kill(stopped, signal.SIGCONT)
print(os.wait()[1])`))
		if r.out != "9 T\n0\n" || r.exit.Code != 0 {
			t.Errorf("%+v, want out = \"9 T\\n0\\n\", Code = 0", r)
		}
	})
}
