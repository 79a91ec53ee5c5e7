package local

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// newInPlace is a backend of the isolation process. Its state is where the code's user may come through, as far as it needs to.
func newInPlace(t testing.TB) *Backend {
	t.Helper()
	if err := errInPlace(); err != nil {
		t.Fatal(err) // the project's own machines have it
	}
	base, err := os.MkdirTemp("/var/tmp", "lsb-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	b := New(&Options{StateDir: base + "/state", CacheDir: base + "/cache", Isolation: isolationProcess, agent: agentBinary})
	t.Cleanup(b.sweeping.Wait)
	return b
}

// tagged are the processes of a sandbox that have not ended.
func tagged(t *testing.T, tag uint64) (pids []int) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/limits")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range all {
		text, err := os.ReadFile(name)
		if err != nil || !strings.Contains(string(text), " "+strconv.FormatUint(tag, 10)+" ") {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if err != nil {
			t.Fatal(err)
		}
		if !zombie(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// daemons starts programs that are out of their run's tree, and prints when they are there.
const daemons = `for i in 1 2 3; do (setsid sh -c 'setsid sleep 10000 & echo up >&3; exec sleep 10000' >/dev/null 2>&1 &); done 3>up; while [ "$(wc -l <up)" != 3 ]; do :; done; echo there`

func startDaemons(t *testing.T, m backend.Machine) {
	t.Helper()
	req := &agentproto.StartRequest{Argv: []string{"/bin/sh", "-c", daemons}, Env: m.Guest().Env, Merge: true, KeepChildren: true}
	if out, _ := start(t, m, req); out != "there\n" {
		t.Fatalf("%q, want that the daemons are there", out)
	}
}

// TestInPlaceEnds: nothing of a sandbox without a pid namespace outlives it, however it ends.
func TestInPlaceEnds(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, b *Backend, m *machine) error{
		"close":   func(_ *testing.T, _ *Backend, m *machine) error { return m.Close(nil) },
		"destroy": func(t *testing.T, _ *Backend, m *machine) error { return m.Destroy(t.Context()) },
		"another handle": func(t *testing.T, b *Backend, m *machine) error {
			other, err := b.Attach(t.Context(), m.ID())
			if err != nil {
				return err
			}
			return errors.Join(other.Destroy(t.Context()), other.Close(nil))
		},
		"agent killed": func(_ *testing.T, _ *Backend, m *machine) error {
			err := m.process.killAgent()
			<-m.Done()
			return err
		},
		"agent stopped": func(t *testing.T, _ *Backend, m *machine) error {
			if err := unix.Kill(m.process.pid, unix.SIGSTOP); err != nil {
				return err
			}
			time := letGoWait
			letGoWait = 0
			defer func() { letGoWait = time }()
			return m.Destroy(t.Context())
		},
		"all that is the agent's killed": func(t *testing.T, _ *Backend, m *machine) error {
			if err := unix.Kill(m.process.pid, unix.SIGSTOP); err != nil { // it would end the rest
				return err
			}
			for _, pid := range children(t, m.process.pid) {
				if err := unix.Kill(pid, unix.SIGKILL); err != nil {
					t.Error(err)
				}
			}
			err := m.process.killAgent()
			<-m.Done()
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newInPlace(t)
			m := create(t, b, nil).(*machine)
			tag := tagOf(m.dir.path)
			startDaemons(t, m)
			if n := len(tagged(t, tag)); n < 6 {
				t.Fatalf("%d processes have the sandbox's mark, want at least the 6 daemons", n)
			}
			places, err := os.Readlink(filepath.Join(m.dir.path, placesLink))
			if err != nil {
				t.Fatal(err)
			}
			if err := end(t, b, m); err != nil {
				t.Error(err)
			}
			if left := tagged(t, tag); len(left) > 0 {
				t.Errorf("processes %v are left, want none", left)
			}
			if _, err := os.Lstat(places); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the sandbox's own directory: %v, want that it is gone", err)
			}
			nothingLeft(t, b, m.ID())
		})
	}
}

// children are the processes that a process has started.
func children(t *testing.T, pid int) (all []int) {
	t.Helper()
	out, err := exec.Command("ps", "-o", "pid=", "--ppid", strconv.Itoa(pid)).Output()
	if err != nil {
		t.Fatal(err)
	}
	for word := range strings.FieldsSeq(string(out)) {
		n, err := strconv.Atoi(word)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, n)
	}
	return all
}

// TestInPlaceCollected: what is left when the owner and all that is the agent's are killed at once, a collection finds.
func TestInPlaceCollected(t *testing.T) {
	b := newInPlace(t)
	t.Setenv(childIsolation, isolationProcess)
	id := newID()
	owner := startOwner(t, b, id)
	m, err := b.Attach(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close(nil)
	startDaemons(t, m)
	agent := m.(*attached).record.AgentPID
	if err := errors.Join(unix.Kill(owner.Process.Pid, unix.SIGSTOP), unix.Kill(agent, unix.SIGSTOP)); err != nil { // they would end the rest
		t.Fatal(err)
	}
	for _, pid := range append(children(t, agent), agent, owner.Process.Pid) {
		if err := unix.Kill(pid, unix.SIGKILL); err != nil {
			t.Error(err)
		}
	}
	owner.Wait()
	tag := tagOf(m.(*attached).path)
	if len(tagged(t, tag)) == 0 {
		t.Fatal("nothing is left that a collection could find, want the daemons")
	}
	found, err := b.GC(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range found {
		if !l.Removed {
			t.Errorf("left over: %+v, want Removed true", l)
		}
	}
	if left := tagged(t, tag); len(left) > 0 {
		t.Errorf("processes %v are left, want none", left)
	}
	nothingLeft(t, b, id)
	d, err := b.dirs()
	if err != nil {
		t.Fatal(err)
	}
	if left := withPrefix(d.state, uidPrefix); len(left) > 0 {
		t.Errorf("%v are left, want none", left)
	}
}

// TestEndTagged: what is marked ends, also what has another number each time that it is looked for, or whose first thread has ended.
func TestEndTagged(t *testing.T) {
	for name, script := range map[string]string{
		"hopper":  "while True:\n  if os.fork(): os._exit(0)",
		"hoppers": "for _ in range(2): os.fork()\nwhile True:\n  if os.fork(): os._exit(0)",
		"thread":  "threading.Thread(target=time.sleep, args=(1000,)).start(); ctypes.CDLL(None).pthread_exit(0)",
	} {
		t.Run(name, func(t *testing.T) {
			for round := range 10 {
				tag := tagOf(t.Name() + strconv.Itoa(round) + newID())
				cmd := exec.Command("python3", "-c", "import ctypes, os, resource, sys, threading, time\nresource.prlimit(0, 10, ("+strconv.FormatUint(tag, 10)+",) * 2)\nprint('up', flush=True)\n"+script)
				// All of them have its other end.
				out, err := cmd.StdoutPipe()
				if err != nil {
					t.Fatal(err)
				}
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				if _, err := out.Read(make([]byte, 3)); err != nil {
					t.Fatal(err)
				}
				if name == "thread" {
					for first := ""; first != "Z"; {
						f, err := statFields(cmd.Process.Pid)
						if err != nil {
							t.Fatal(err)
						}
						first = f[statState]
					}
				}
				if err := endTagged(tag); err != nil {
					t.Error(err)
				}
				raw, err := out.(*os.File).SyscallConn()
				if err != nil {
					t.Fatal(err)
				}
				if err := raw.Control(func(fd uintptr) {
					if n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0); n == 0 || err != nil {
						t.Errorf("round %d: %d, %v, want that nothing is left that could write", round, n, err)
					}
				}); err != nil {
					t.Error(err)
				}
				_ = cmd.Process.Kill()
				_ = cmd.Wait() // it was killed
			}
		})
	}
}

// TestInPlaceRefuses: what needs namespaces is refused with what to do.
func TestInPlaceRefuses(t *testing.T) {
	b := newInPlace(t)
	for name, change := range map[string]func(*backend.Spec){
		"image":   func(s *backend.Spec) { s.Image = "python:3" },
		"root":    func(s *backend.Spec) { s.WritableRoot = true },
		"user":    func(s *backend.Spec) { s.User = "root" },
		"workdir": func(s *backend.Spec) { s.Workdir = "/work" },
		"mount":   func(s *backend.Spec) { s.Mounts = []backend.Mount{{Source: "/usr", Target: "/usr2"}} },
		"layer":   func(s *backend.Spec) { s.Layers = []backend.Layer{{Source: "/usr", Target: "/usr2"}} }, // which is not below /tmp
	} {
		spec := backend.Spec{ID: newID()}
		change(&spec)
		m, err := b.Create(t.Context(), spec)
		if err == nil {
			m.Close(nil)
		}
		if !errors.Is(err, backend.ErrUnsupported) || !strings.Contains(err.Error(), "use the isolation namespace") {
			t.Errorf("%s: %v, want ErrUnsupported with what to do", name, err)
		}
	}
	if _, err := b.CreateZygote(t.Context(), backend.Spec{ID: newID()}); !errors.Is(err, backend.ErrUnsupported) {
		t.Errorf("a zygote: %v, want ErrUnsupported", err)
	}
	if _, err := New(&Options{Isolation: "vm"}).Capabilities(t.Context()); !errors.Is(err, backend.ErrInvalid) {
		t.Errorf("an unknown isolation: %v, want ErrInvalid", err)
	}
	m := create(t, b, nil)
	if _, _, err := m.Commit(t.Context(), t.TempDir()+"/x.tar", "", strings.NewReader("")); !errors.Is(err, backend.ErrUnsupported) {
		t.Errorf("a commit: %v, want ErrUnsupported", err)
	}
}

// TestInPlaceFails: what a creation has made is taken back.
func TestInPlaceFails(t *testing.T) {
	b := newInPlace(t)
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "none"))
	if _, err := b.Create(t.Context(), backend.Spec{ID: newID()}); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "set TMPDIR") {
		t.Errorf("without a directory for it: %v, want an error with what to do", err)
	}
	d, err := b.dirs()
	if err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadDir(d.sandboxes)
	if users := withPrefix(d.state, uidPrefix); err != nil || len(list)+len(users) > 0 {
		t.Errorf("%v, %v, %v are left, want nothing", list, users, err)
	}
}

// TestInPlaceUsers: as root each sandbox has a user that no other has, and that is free again after it.
func TestInPlaceUsers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give code other users")
	}
	b := newInPlace(t)
	a := create(t, b, nil).(*machine)
	c := create(t, b, nil).(*machine)
	ids := shell(t, a, "id -u; id -g; id -G")
	if ids == shell(t, c, "id -u; id -g; id -G") {
		t.Errorf("both have %q, want users of their own", ids)
	}
	want, group := strconv.Itoa(int(a.users.codeUID)), strconv.Itoa(int(a.users.codeGID))
	if ids != want+"\n"+group+"\n"+group+"\n" {
		t.Errorf("user and groups %q, want %s, and group %s alone", ids, want, group)
	}
	d, err := b.dirs()
	if err != nil {
		t.Fatal(err)
	}
	lock := filepath.Join(d.state, "uid-"+want)
	if _, err := lockFile(lock, unix.LOCK_EX|unix.LOCK_NB); !errors.Is(err, syscall.EWOULDBLOCK) {
		t.Errorf("the user's lock: %v, want that it is taken", err)
	}
	if err := a.Close(nil); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(lock); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the user's lock: %v, want that it is gone", err)
	}
}
