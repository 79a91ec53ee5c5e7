package landlock

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// Set, they make this binary confine itself to a work directory and run a program.
const (
	envWork  = "LLMSANDBOX_TEST_LANDLOCK"
	envScope = "LLMSANDBOX_TEST_LANDLOCK_SCOPE"
	// as code in no namespaces of its own: port may be connected to
	envPort = "LLMSANDBOX_TEST_LANDLOCK_PORT"
)

func TestMain(m *testing.M) {
	if os.Getenv(envWork) == "" {
		os.Exit(m.Run())
	}
	fmt.Fprintln(os.Stderr, "launcher:", launch(os.Getenv(envWork), os.Args[1:]))
	os.Exit(125)
}

// goRoot is where the go command on this machine keeps its toolchain.
func goRoot() string {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "/usr/local/go"
	}
	return strings.TrimSpace(string(out))
}

func launch(work string, argv []string) error {
	rules := Rules{
		ReadExec:     []string{"/usr", "/bin", "/lib", "/lib64", "/etc", "/opt", goRoot(), "/no/such/path"},
		ReadWrite:    []string{work},
		Special:      []string{"/dev", "/proc"},
		ScopeSignals: os.Getenv(envScope) != "",
	}
	port, outside := os.LookupEnv(envPort)
	if outside {
		rules.LimitTCP, rules.Special = true, []string{"/dev/null", "/dev/urandom"}
		rules.ReadOnly = []string{"/proc/cpuinfo", "/var/lib"}
		if n, err := strconv.ParseUint(port, 10, 16); err == nil {
			rules.Ports = []uint16{uint16(n)}
		}
	}
	fd, err := NewRuleset(rules)
	if err != nil {
		return err
	}
	os.Unsetenv(envWork)
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	domains := []int{fd}
	if outside {
		scope, err := NewScope()
		if err != nil {
			return err
		}
		domains = []int{scope, fd}
	}
	for _, fd := range domains {
		if err := Enter(fd); err != nil {
			return err
		}
	}
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return err
	}
	return syscall.Exec(path, argv, os.Environ())
}

func confined(t *testing.T, work string, scope bool, argv ...string) (string, error) {
	t.Helper()
	var env []string
	if scope {
		env = []string{envScope + "=1"}
	}
	return confinedWith(t, work, env, argv...)
}

func confinedWith(t *testing.T, work string, env []string, argv ...string) (string, error) {
	t.Helper()
	if ABI() == 0 {
		if os.Getenv("LLMSANDBOX_REQUIRE") == "1" {
			t.Fatal(ErrUnsupported)
		}
		t.Skip(ErrUnsupported)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, argv...)
	cmd.Dir = work
	cmd.Env = append(os.Environ(), envWork+"="+work, "HOME="+work, "TMPDIR="+work, "GOCACHE="+work+"/cache", "GOFLAGS=-mod=mod")
	cmd.Env = append(cmd.Env, env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestPaths(t *testing.T) {
	work, outside := t.TempDir(), t.TempDir()
	canary := filepath.Join(outside, "canary")
	if err := os.WriteFile(canary, []byte("the canary sings"), 0o666); err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name, script string
		ok           bool
		abi          int
	}{
		{"write and run", "cp /bin/true t && ./t && rm t", true, 1},
		{"rename between folders", "mkdir a b && touch a/f && mv a/f b/f && ln b/f a/g", true, 2},
		{"fifo", "mkfifo p", true, 1},
		{"unix socket", "/usr/bin/python3 -c 'import socket; s = socket.socket(socket.AF_UNIX); s.bind(\"s\"); s.listen(); socket.socket(socket.AF_UNIX).connect(\"s\")'", true, 1},
		{"anonymous program", "/usr/bin/python3 -c 'import os; f = os.memfd_create(\"p\"); os.write(f, open(\"/bin/true\", \"rb\").read()); os.execve(f, [\"p\"], {})'", true, 1},
		{"itself", "/proc/self/exe -c true", true, 1},
		{"null device", "echo x > /dev/null && head -c 4 /dev/urandom > /dev/null", true, 1},
		{"proc", "cat /proc/self/status > /dev/null && echo me > /proc/self/comm", true, 1},
		{"read outside", "cat " + canary, false, 1},
		{"list outside", "ls " + outside, false, 1},
		{"write outside", "echo x >> " + canary, false, 1},
		{"create outside", "touch " + outside + "/f", false, 1},
		{"remove outside", "rm -f " + canary, false, 1},
		{"truncate outside", "truncate -s 0 " + canary, false, 3},
		{"by a link", "ln -s " + canary + " l && cat l", false, 1},
		{"hard link in", "ln " + canary + " h && cat h", false, 1},
		{"write the toolchain", "touch /usr/bin/llmsandbox-test", false, 1},
		{"make a device", "mknod d c 1 5", false, 1},
		{"make a file in /dev", "touch /dev/shm-llmsandbox-test", false, 1},
		{"the home", "ls /root", false, 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if ABI() != 0 && ABI() < c.abi {
				t.Skipf("needs ABI %d", c.abi)
			}
			out, err := confined(t, work, false, "sh", "-c", c.script)
			if (err == nil) != c.ok {
				t.Fatalf("%s: %v, want success = %v\n%s", c.script, err, c.ok, out)
			}
			if strings.Contains(out, "launcher:") || strings.Contains(out, "sings") {
				t.Fatalf("%s: %s, want out without \"launcher:\", out without \"sings\"", c.script, out)
			}
		})
	}
	if b, err := os.ReadFile(canary); err != nil || string(b) != "the canary sings" {
		t.Fatalf("the canary: %q, %v, want no error, b = \"the canary sings\"", b, err)
	}
}

func TestSignals(t *testing.T) {
	if ABI() != 0 && ABI() < 6 {
		t.Skip("needs ABI 6")
	}
	other := exec.Command("sleep", "60")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Process.Kill(); _ = other.Wait() }()
	script := fmt.Sprintf("kill -0 %d", other.Process.Pid)
	work := t.TempDir()
	if out, err := confined(t, work, true, "sh", "-c", script); err == nil {
		t.Errorf("a scoped process may signal another: %s, want an error", out)
	}
	if out, err := confined(t, work, false, "sh", "-c", script); err != nil {
		t.Errorf("an unscoped process may not signal another: %v %s", err, out)
	}
	if out, err := confined(t, work, true, "sh", "-c", "sleep 60 & kill $! && ! wait $!"); err != nil {
		t.Errorf("a scoped process may not signal its child: %v %s", err, out)
	}
}

// TestOutside is about code in no namespaces of its own: what surrounds it is there, and denied.
func TestOutside(t *testing.T) {
	if len(Lacks(ABI())) > 0 {
		t.Skipf("the kernel lacks %q", Lacks(ABI()))
	}
	listen := func(network, address string) net.Listener {
		l, err := net.Listen(network, address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		return l
	}
	allowed, other := listen("tcp", "127.0.0.1:0"), listen("tcp", "127.0.0.1:0")
	name := fmt.Sprintf("llmsandbox-test-%d", os.Getpid())
	listen("unix", "@"+name)
	process := exec.Command("sleep", "60")
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = process.Process.Kill(); _ = process.Wait() }()
	port := func(l net.Listener) int { return l.Addr().(*net.TCPAddr).Port }
	connect := "import socket; socket.create_connection((\"127.0.0.1\", %d))"
	signal := "import signal, os; "
	cases := []struct {
		name, python string
		ok           bool
	}{
		{"the proxy", fmt.Sprintf(connect, port(allowed)), true},
		{"another port", fmt.Sprintf(connect, port(other)), false},
		{"bind", "import socket; socket.socket().bind((\"127.0.0.1\", 0))", false},
		{"bind the proxy's port", fmt.Sprintf("import socket; socket.socket().bind((\"127.0.0.2\", %d))", port(allowed)), false},
		{"abstract socket", "import socket; socket.socket(socket.AF_UNIX).connect(\"\\0" + name + "\")", false},
		{"abstract socket of its own", "import socket; s = socket.socket(socket.AF_UNIX); s.bind(\"\\0" + name + "-own\"); s.listen(); socket.socket(socket.AF_UNIX).connect(s.getsockname())", true},
		{"signal", fmt.Sprintf(signal+"os.kill(%d, 0)", process.Process.Pid), false},
		{"signal by a descriptor", fmt.Sprintf(signal+"signal.pidfd_send_signal(os.pidfd_open(%d), 0)", process.Process.Pid), false},
		{"signal by queue", fmt.Sprintf("import ctypes, sys; b = ctypes.create_string_buffer(128); b[8] = 0xff; b[9] = 0xff; b[10] = 0xff; b[11] = 0xff; sys.exit(ctypes.CDLL(None).syscall(%d, %d, 0, b) != 0)", unix.SYS_RT_SIGQUEUEINFO, process.Process.Pid), false},
		{"signal its own", signal + "p = os.fork() or signal.pause(); os.kill(p, 9)", true},
		{"look into", fmt.Sprintf("open(\"/proc/%d/environ\").read()", process.Process.Pid), false},
		{"one file", "open(\"/proc/cpuinfo\").read()", true},
		{"a file beside it", "open(\"/proc/meminfo\").read()", false},
		{"a file to read only", "import os; os.listdir(\"/var/lib\")", true},
		{"one device", "open(\"/dev/null\", \"w\").write(\"x\")", true},
		{"a device beside it", "open(\"/dev/zero\").read(1)", false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			work := t.TempDir()
			out, err := confinedWith(t, work, []string{envPort + "=" + strconv.Itoa(port(allowed))}, "/usr/bin/python3", "-c", c.python)
			if (err == nil) != c.ok || strings.Contains(out, "launcher:") {
				t.Errorf("%v, want success = %v\n%s", err, c.ok, out)
			}
			if plain, err := exec.Command("/usr/bin/python3", "-c", c.python).CombinedOutput(); err != nil {
				t.Errorf("unconfined: %v, want no error\n%s", err, plain)
			}
		})
	}
	t.Run("no port", func(t *testing.T) {
		if out, err := confinedWith(t, t.TempDir(), []string{envPort + "="}, "/usr/bin/python3", "-c", fmt.Sprintf(connect, port(allowed))); err == nil {
			t.Errorf("connected, want an error\n%s", out)
		}
	})
}

func TestToolchains(t *testing.T) {
	files := map[string]string{
		"m.go":    "package main\nfunc main() { println(\"works\") }\n",
		"M.java":  "class M { public static void main(String[] a) { System.err.println(\"works\"); } }\n",
		"m.cpp":   "#include <iostream>\nint main() { std::cerr << \"works\"; }\n",
		"m.py":    "import os,sys,tempfile,multiprocessing as m\ntempfile.mkdtemp()\nos.rename('m.py','n.py')\nprint('works')\n",
		"m.sh":    "cat <<E\nworks\nE\n",
		"work.js": "require('fs').mkdtempSync('x'); console.log('works')\n",
	}
	cases := []struct{ name, need, script string }{
		{"go", "go", "go run m.go"},
		{"java", "javac", "javac -J-XX:-UsePerfData M.java && java -XX:-UsePerfData M"},
		{"c++", "g++", "g++ -o m m.cpp && ./m"},
		{"python", "/usr/bin/python3", "/usr/bin/python3 m.py"},
		{"bash", "bash", "bash m.sh"},
		{"node", "node", "node work.js"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if _, err := exec.LookPath(c.need); err != nil {
				if os.Getenv("LLMSANDBOX_REQUIRE") == "1" {
					t.Fatal(err)
				}
				t.Skip(err)
			}
			work := t.TempDir()
			for name, text := range files {
				if err := os.WriteFile(filepath.Join(work, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if out, err := confined(t, work, false, "sh", "-c", c.script); err != nil || !strings.Contains(out, "works") {
				t.Fatalf("%v, want no error, out containing \"works\"\n%s", err, out)
			}
		})
	}
}

func TestRuleset(t *testing.T) {
	fd, err := NewRuleset(Rules{ReadWrite: []string{t.TempDir()}})
	if ABI() == 0 {
		if !errors.Is(err, ErrUnsupported) {
			t.Fatalf("without Landlock: %v, want ErrUnsupported", err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	if err != nil || flags&unix.FD_CLOEXEC == 0 {
		t.Fatalf("the ruleset's descriptor is inherited: %#x, %v, want no error, FD_CLOEXEC != 0", flags, err)
	}
	if _, err := NewRuleset(Rules{ReadExec: []string{"/etc/passwd/x"}}); !errors.Is(err, unix.ENOTDIR) {
		t.Fatalf("a path through a file: %v, want unix.ENOTDIR", err)
	}
}

func TestLacks(t *testing.T) {
	for abi, want := range map[int]int{0: 6, 2: 5, 3: 4, 4: 3, 5: 2, 6: 0, 99: 0} {
		if got := Lacks(abi); len(got) != want {
			t.Errorf("Lacks(%d) = %q, want %d", abi, got, want)
		}
	}
}

func TestRights(t *testing.T) {
	if rights(1) != 0x1fff || rights(2) != 0x3fff || rights(3) != 0x7fff || rights(4) != 0x7fff || rights(5) != 0xffff || rights(99) != 0xffff {
		t.Errorf("rights: %#x %#x %#x %#x, want rights(1) = 0x1fff, rights(2) = 0x3fff, rights(3) = 0x7fff, rights(4) = 0x7fff, rights(5) = 0xffff, rights(99) = 0xffff", rights(1), rights(2), rights(3), rights(5))
	}
	if got := Unenforced(4); len(got) != 2 {
		t.Errorf("Unenforced(4) = %q, want len(got) = 2", got)
	}
	if got := Unenforced(7); got != nil {
		t.Errorf("Unenforced(7) = %q, want nil", got)
	}
}
