package e2e

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/agentproto"
	"github.com/llmsandbox/llmsandbox/internal/testimage"
	"github.com/llmsandbox/llmsandbox/test/abuse"
)

// needsRoot skips what only the machine's root can have: users of the code's own with the host's toolchains.
func needsRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can give code users of its own with the host's toolchains")
	}
}

func TestUser(t *testing.T) {
	b, left := imageBackend(t)
	image := testimage.Layout(t, map[string]v1.Image{"one": testimage.Busybox(t, nil)}) + ":one"
	for _, c := range []struct {
		user, image, want string
	}{
		{"root", image, "0:0"},
		{"0", image, "0:0"},
		{"app", image, "1000:1000"},
		{"app:root", image, "1000:0"},
		{"12", image, "12:0"},
		{"65535:65534", image, "65535:65534"},
		{"root", "", "0:0"},
		{"sandbox", "", "1000:1000"},
		{"nobody:7", "", "65534:7"},
	} {
		t.Run(c.user+" "+c.image[:min(len(c.image), 1)], func(t *testing.T) {
			if c.image == "" {
				needsRoot(t)
			}
			for _, writable := range []bool{false, true} {
				sb := open(t, llmsandbox.Options{Backend: b, Language: "bash", Image: c.image, User: c.user, WritableRoot: writable})
				shellIn(t, sb, `cd /sandbox && echo x >f && echo y >/tmp/f && stat -c %u:%g f /tmp/f; (echo z >/opt/f && echo z >/f) 2>/dev/null && stat -c %u /opt/f || echo denied`,
					c.want+"\n"+c.want+"\n"+afterRoot(writable && c.want == "0:0"))
				if err := sb.WriteFile(testContext(t), "by-file", []byte("x")); err != nil {
					t.Error(err)
				}
				shellIn(t, sb, "cd /sandbox && cat by-file && stat -c %u:%g by-file", "x"+c.want+"\n")
			}
		})
	}
	if names := left(); len(names) != 0 {
		t.Errorf("%v are left, want none", names)
	}
}

func afterRoot(can bool) string {
	if can {
		return "0\n"
	}
	return "denied\n"
}

func TestUserRefused(t *testing.T) {
	b, _ := imageBackend(t)
	refused := func(o llmsandbox.Options, want error, says string) {
		t.Helper()
		o.BestEffort = true
		if o.Backend == nil {
			o.Backend = b
		}
		sb, err := llmsandbox.Open(testContext(t), &o)
		if err == nil {
			sb.Close()
		}
		if !errors.Is(err, want) || !strings.Contains(err.Error(), says) {
			t.Errorf("user %q: %v, want %v and %q", o.User, err, want, says)
		}
	}
	for _, user := range []string{":", ":0", "a:", "a b", "-1", "a:b:c", "a/b", strings.Repeat("a", 65), "ä"} {
		refused(llmsandbox.Options{User: user}, llmsandbox.ErrInvalid, "a name or a number")
	}
	if os.Geteuid() != 0 {
		refused(llmsandbox.Options{User: "root"}, llmsandbox.ErrUnsupported, "only the machine's root")
		return
	}
	refused(llmsandbox.Options{User: "nosuch"}, llmsandbox.ErrInvalid, "/etc/passwd")
	refused(llmsandbox.Options{User: "root:nosuch"}, llmsandbox.ErrInvalid, "/etc/group")
	refused(llmsandbox.Options{User: "65536"}, llmsandbox.ErrInvalid, "below 65536")
	refused(llmsandbox.Options{User: "1:65536"}, llmsandbox.ErrInvalid, "below 65536")
}

// TestRootCan has root do what root does, with the capabilities that it has and no others.
func TestRootCan(t *testing.T) {
	needsRoot(t)
	b, _ := imageBackend(t)
	sb := open(t, llmsandbox.Options{Backend: b, Language: "bash", User: "root", WritableRoot: true})
	shellIn(t, sb, `grep -E '^(Cap(Prm|Eff|Bnd|Amb|Inh)|NoNewPrivs|Seccomp):' /proc/self/status | tr '\t' ' '`,
		"CapInh: 0000000000000000\nCapPrm: 00000000800000fb\nCapEff: 00000000800000fb\nCapBnd: 00000000800000fb\nCapAmb: 0000000000000000\nNoNewPrivs: 1\nSeccomp: 2\n")
	shellIn(t, sb, `useradd -m -s /bin/bash one && useradd -m two && su one -c 'id -un; echo mine >~/f; chmod 600 ~/f; cat /home/two/x 2>/dev/null; echo x >/usr/x' 2>/dev/null; cat /home/one/f; chown two /home/one/f; stat -c %U /home/one/f`,
		"one\nmine\ntwo\n")
	shellIn(t, sb, `su one -c 'sleep 1000' & until pkill -u one sleep; do :; done; wait $! 2>/dev/null; echo $?`, "143\n")
	shellIn(t, sb, `su one -c 'kill -0 $PPID' 2>/dev/null || echo denied; su one -c 'grep CapEff /proc/self/status' | tr '\t' ' '`, "denied\nCapEff: 0000000000000000\n")
	// What another user of the sandbox has is removed with it, and processes of it end with a command.
	res, err := sb.Exec(testContext(t), []string{"sh", "-c", "id -u; grep CapEff /proc/self/status"}, &llmsandbox.ExecOptions{User: "one"})
	if err != nil || !regexp.MustCompile(`^[1-9]\d*\nCapEff:\s*0+\n$`).MatchString(res.Stdout) {
		t.Errorf("exec as another user prints %q, %v, want a uid and no capability", res.Stdout, err)
	}
}

// TestRootCannot tries as root what would reach beyond the sandbox.
func TestRootCannot(t *testing.T) {
	needsRoot(t)
	b, _ := imageBackend(t)
	for name, o := range map[string]llmsandbox.Options{"writable": {User: "root", WritableRoot: true}, "read-only": {User: "root"}, "sudo": {Sudo: true, WritableRoot: true}, "may have sudo": {Sudo: true}} {
		t.Run(name, func(t *testing.T) {
			o.Backend, o.Limits.Disk = b, 32<<20
			sb := open(t, o)
			if err := sb.WriteFile(testContext(t), "attacks.py", []byte(abuse.AsRoot)); err != nil {
				t.Fatal(err)
			}
			argv := []string{"python3", "attacks.py"}
			if name == "sudo" {
				argv = append([]string{"sudo"}, argv...)
			}
			res, err := sb.Exec(testContext(t), argv, nil)
			if err != nil || res.Status != llmsandbox.StatusOK {
				t.Fatalf("%v, status %s: %s", err, res.Status, clip(res.Stderr))
			}
			if !strings.HasSuffix(res.Stdout, "end\n") || strings.Count(res.Stdout, "\n") != 1 {
				t.Errorf("root reached:\n%s", res.Stdout)
			}
			// The agent has taken no harm, and answers.
			shellIn(t, sb, "echo still here", "still here\n")
		})
	}
}

func TestSudo(t *testing.T) {
	b, _ := imageBackend(t)
	image := testimage.Layout(t, map[string]v1.Image{"one": testimage.Busybox(t, nil)}) + ":one"
	for name, o := range map[string]llmsandbox.Options{
		"host": {}, "host, writable": {WritableRoot: true}, "image": {Image: image}, "image, writable": {Image: image, WritableRoot: true}, "of another user": {User: "33:33"}, "of root": {User: "root"},
	} {
		t.Run(name, func(t *testing.T) {
			if o.Image == "" {
				needsRoot(t)
			}
			o.Backend, o.Language, o.Sudo = b, "bash", true
			sb := open(t, o)
			uid := cmp.Or(strings.TrimSuffix(o.User, ":33"), "1000")
			if uid == "root" {
				uid = "0"
			}
			shellIn(t, sb, `id -u; sudo id -u; sudo -nE -- id -g; sudo FOO=bar sh -c 'echo $FOO $USER'; echo 'id -u' | sudo -s; sudo sh -c 'echo x >/etc/x' 2>/dev/null || echo read-only; (exit 3) || sudo sh -c 'exit 4'; echo $?`,
				uid+"\n0\n0\nbar root\n0\n"+map[bool]string{false: "read-only\n"}[o.WritableRoot]+"4\n")
			shellIn(t, sb, `sudo 2>&1; sudo -x id 2>&1; sudo nope 2>&1; sudo -u 2>&1; echo $?`,
				"sudo: what is to be run? Use: sudo [-u USER] COMMAND\nsudo: the sandbox's sudo has no option -x\nsudo: nope: command not found\nsudo: -u needs a user\n1\n")
			shellIn(t, sb, `sudo touch /run/sudo/sudo 2>/dev/null || echo denied; sudo sh -c 'echo x >/sandbox/of-root'; stat -c %u /sandbox/of-root; sudo sh -c "kill -0 $$" && echo reached`, "denied\n0\nreached\n")
			if o.Image == "" {
				shellIn(t, sb, `sudo chown 7 /sandbox/of-root && stat -c %u /sandbox/of-root; sudo -u nobody id -u; sudo -u '#7' id -u; sudo -u nobody grep CapEff /proc/self/status | tr '\t' ' '; sudo -u nobody sudo id -u 2>/dev/null || echo denied`, "7\n65534\n7\nCapEff: 0000000000000000\ndenied\n")
			}
		})
	}
	plain := open(t, llmsandbox.Options{Backend: b, Language: "bash", Image: image, User: "1000:1000"})
	shellIn(t, plain, `ls /run/sudo 2>/dev/null; grep -E 'CapEff|NoNewPrivs' /proc/self/status | tr '\t' ' '`, "CapEff: 0000000000000000\nNoNewPrivs: 1\n")
}

// TestRootForks has root fork as many users: the limit of processes holds for all of them, and the agent has what it needs.
func TestRootForks(t *testing.T) {
	needsRoot(t)
	b, _ := imageBackend(t)
	const most = 40
	sb := open(t, llmsandbox.Options{Backend: b, User: "root", Limits: llmsandbox.Limits{PIDs: most}})
	res, err := sb.Run(testContext(t), `
import os, signal, time
r, w = os.pipe()
for uid in range(200):
    try:
        if os.fork() == 0:
            os.setuid(uid)
            os.write(w, b"x")
            try:
                while os.fork() != 0: pass
                os.write(w, b"x")
            except OSError: pass
            signal.pause()
    except OSError: pass
os.set_blocking(r, False)
print(len(os.read(r, 10000)), flush=True)
signal.pause()
`, &llmsandbox.RunOptions{Timeout: 5 * time.Second})
	if err != nil || res.Status != llmsandbox.StatusTimeout {
		t.Fatalf("%v, status %s: %s%s", err, res.Status, res.Stdout, clip(res.Stderr))
	}
	if n, err := strconv.Atoi(strings.TrimSpace(res.Stdout)); err != nil || n > most+2*agentproto.SpareThreads {
		t.Errorf("%q processes of many users at once, %v, want %d at most", res.Stdout, err, most+2*agentproto.SpareThreads)
	}
	shellIn(t, sb, "echo still here", "still here\n")
}

// TestRootFindsNothingPrivate plants what others may not read among what a writable root shows of the host.
func TestRootFindsNothingPrivate(t *testing.T) {
	needsRoot(t)
	b, _ := imageBackend(t)
	var planted []string
	plant := func(path, text string, mode fs.FileMode) {
		t.Helper()
		if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.Remove(path) })
		planted = append(planted, path)
	}
	plant("/usr/local/share/llmsandbox-test-secret", "canary", 0o600)
	if _, err := os.Stat("/etc/apt"); err == nil {
		plant("/etc/apt/llmsandbox-test.conf", "canary", 0o640)
		plant("/etc/apt/sources.list.d/llmsandbox-test.list", "deb http://user:canary@example.invalid/ x main\n", 0o644)
	}
	sb := open(t, llmsandbox.Options{Backend: b, Language: "bash", User: "root", WritableRoot: true})
	shellIn(t, sb, "cat "+strings.Join(planted, " ")+" /etc/shadow /etc/gshadow /etc/ssh/* 2>/dev/null; ls -A /root /home; grep -c . /etc/passwd >/dev/null && echo end", "/home:\n\n/root:\nend\n")
}

// TestRootCommits makes an image of what root has changed.
func TestRootCommits(t *testing.T) {
	needsRoot(t)
	b, _ := imageBackend(t)
	image := testimage.Layout(t, map[string]v1.Image{"one": testimage.Busybox(t, nil)}) + ":one"
	sb := open(t, llmsandbox.Options{Backend: b, Language: "bash", Image: image, User: "root", WritableRoot: true})
	shellIn(t, sb, `cd /sandbox && echo x >/etc/x && rm -r /opt && mkdir /srv/y && echo y >/srv/y/f && chown 5:6 /srv/y/f && echo z >/srv/closed && chown 5 /srv/closed && chmod 600 /srv/closed && echo w >w && cat /srv/closed`, "z\n")
	file := filepath.Join(t.TempDir(), "image.tar")
	res, err := sb.Commit(testContext(t), file, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Skipped) != 1 || !strings.Contains(res.Skipped[0], "srv/closed") {
		t.Errorf("skipped %q, want what another user of the sandbox keeps to itself", res.Skipped)
	}
	shellIn(t, open(t, llmsandbox.Options{Backend: b, Language: "bash", Image: file, User: "root"}), `cat /etc/x /srv/y/f /sandbox/w; ls /opt /srv/closed 2>/dev/null`, "x\ny\nw\n")
}

// packagesOpen opens a sandbox whose root may use this machine's package sources.
func packagesOpen(t *testing.T, o llmsandbox.Options) *llmsandbox.Sandbox {
	t.Helper()
	needsRoot(t)
	o.Backend, _ = imageBackend(t)
	o.Language, o.User, o.WritableRoot = "bash", "root", true
	o.Network = llmsandbox.Network{Mode: llmsandbox.NetworkAllow, Allow: []string{llmsandbox.PackageHosts}}
	return open(t, o)
}

// TestPackageManager installs a package into the sandbox, and not into the host.
func TestPackageManager(t *testing.T) {
	needsRoot(t)
	needsApt(t)
	const name, program = "hello-traditional", "/usr/bin/hello"
	if _, err := os.Lstat(program); err == nil {
		t.Fatalf("%s is installed here: remove %s", program, name)
	}
	sb := packagesOpen(t, llmsandbox.Options{Workdir: "/srv/project"})
	shellIn(t, sb, "(apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y "+name+") >log 2>&1 || cat log; "+program+" | head -c 5; dpkg -l "+name+" | grep -c ^ii", "Hello1\n")
	for _, path := range []string{program, "/srv/project"} {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is on the host: %v", path, err)
		}
	}
	if out, err := exec.Command("dpkg-query", "-W", name).CombinedOutput(); err == nil {
		t.Errorf("the host's package manager knows of it: %s", out)
	}
	// A repository of its own, cloned to where the code is.
	shellIn(t, sb, `git init -q /opt/origin && cd /opt/origin && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m first && cd /srv/project && git clone -q /opt/origin clone && git -C clone log --format=%s`, "first\n")
	dir := filepath.Join(t.TempDir(), "out")
	if _, err := sb.CopyOut(testContext(t), "clone", dir); err != nil {
		t.Error(err)
	}
}

func needsApt(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("apt-get"); err != nil {
		t.Skip("there is no apt-get here")
	}
}

// TestPackageManagerMany installs a package with some thirty others that it needs, one of which makes a user of its own.
func TestPackageManagerMany(t *testing.T) {
	needsRoot(t)
	needsApt(t)
	const name, program = "erlang-nox", "/usr/bin/erl"
	if _, err := os.Lstat(program); err == nil {
		t.Fatalf("%s is installed here: remove %s and what it needs", program, name)
	}
	sb := packagesOpen(t, llmsandbox.Options{Limits: llmsandbox.Limits{Timeout: 3 * time.Minute}})
	res, err := sb.Shell(testContext(t), `exec 3>&1 >log 2>&1; before=$(dpkg-query -f '.\n' -W | wc -l)
apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends `+name+` || cat log >&3
exec >&3; echo $(($(dpkg-query -f '.\n' -W | wc -l) - before)); dpkg --audit
erl -noshell -eval 'io:format("~p~n", [6*7]), halt().'; getent passwd epmd | cut -d: -f1`, nil)
	if err != nil {
		t.Fatal(err)
	}
	count, rest, _ := strings.Cut(res.Stdout, "\n")
	if n, err := strconv.Atoi(count); err != nil || n < 20 || rest != "42\nepmd\n" {
		t.Errorf("stdout %q, want 20 packages or more, and that they work\nstderr: %s", res.Stdout, clip(res.Stderr))
	}
	if _, err := os.Lstat(program); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is on the host: %v", program, err)
	}
}

// TestPipIntoSystem installs a package of Python among those of the system, which the next run imports, and no other sandbox.
func TestPipIntoSystem(t *testing.T) {
	const module = "peppercorn" // small, of Python only, and needs nothing
	sb := packagesOpen(t, llmsandbox.Options{Env: pipEnv()})
	python := &llmsandbox.RunOptions{Language: "python"}
	const there = `import importlib.util; print(importlib.util.find_spec("` + module + `") is not None)`
	wantStdout(t, run(t, sb, there, python), "False\n")
	if res := run(t, sb, "python3 -m pip install --break-system-packages "+module, nil); !res.OK() {
		t.Fatalf("status %s: %s%s", res.Status, clip(res.Stdout), clip(res.Stderr))
	}
	wantStdout(t, run(t, sb, "import "+module+", os; print("+module+".parse([]), os.path.dirname("+module+".__file__).startswith(('/usr/', '/opt/')))", python), "{} True\n")
	b, _ := imageBackend(t)
	wantStdout(t, run(t, open(t, llmsandbox.Options{Backend: b, User: "root", WritableRoot: true}), there, nil), "False\n")
}

// pipEnv is what pip goes by on this machine, which is not in a sandbox.
func pipEnv() map[string]string {
	env := map[string]string{}
	for _, name := range []string{"PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_TRUSTED_HOST"} {
		if v := os.Getenv(name); v != "" {
			env[name] = v
		}
	}
	return env
}
