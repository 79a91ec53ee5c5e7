//go:build linux

package container

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/testcluster"
	"github.com/llmsandbox/llmsandbox/internal/testengine"
	"github.com/llmsandbox/llmsandbox/internal/testimage"
)

// withSuite is incontainerDir with the end-to-end tests as a program.
func withSuite(t *testing.T) string {
	t.Helper()
	dir := incontainerDir(t)
	build := exec.Command("go", "test", "-c", "-o", filepath.Join(dir, "e2e.test"), "./test/e2e")
	build.Dir, build.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the tests: %v\n%s", err, out)
	}
	return dir
}

var ended = regexp.MustCompile(`(?m)^ +--- (PASS|SKIP|FAIL): \S+`)

// A part of the suite: the pattern below its name, and whether a case that finds no library or program fails.
type part struct{ pattern, required string }

var (
	// The languages' cases that want numpy or ggplot2, which the image has not, are skipped.
	attacks = part{"/./^(Acceptance|Abuse)", ""}
	parts   = []part{{"/^(Contract|Agent)$", "1"}, {"/^Language$/^(Acceptance|Abuse)", ""}}
)

// runSuite runs parts of a test by what executes a program in a container. Without has what does not hold, and why.
func runSuite(t *testing.T, test, program string, parts []part, without map[string]string, execute func(argv ...string) *exec.Cmd) {
	t.Helper()
	// There is no network, and the image has no curl.
	skip := []string{"^" + test + "$/^Language$/^Acceptance28LibrariesOfRegistries$", "^" + test + "$/^Contract$/^Abuse71Secrets$/^bash$"}
	for name, why := range without {
		t.Logf("%s is left out: %s", name, why)
		skip = append(skip, "^"+test+"$/./^"+strings.ReplaceAll(name, "/", "$/^")+"$")
	}
	for _, p := range parts {
		out, err := execute("env", "HOME=/tmp", "LLMSANDBOX_REQUIRE="+p.required, program, "-test.v", "-test.timeout", "15m", "-test.run", "^"+test+"$"+p.pattern, "-test.skip", strings.Join(skip, "|")).CombinedOutput()
		count := map[string]int{}
		for _, m := range ended.FindAllSubmatch(out, -1) {
			count[string(m[1])]++
		}
		t.Logf("%s: %v", p.pattern, count)
		if err != nil || count["PASS"] < 10 {
			t.Errorf("%s: %v, want no error and cases that pass\n%s", p.pattern, err, out)
		}
	}
}

// Limits of processes count all of a uid: no user of the machine has 61844.

// TestSuite: what the isolation process holds on a machine it holds in a container without any flag.
func TestSuite(t *testing.T) {
	dir := withSuite(t)
	e := testengine.Docker(t)
	e.Images(t)
	image, err := testengine.ImagesMark(t.Context())
	testimage.Must(t, err)
	for _, user := range []string{"0", "61844:61844"} {
		t.Run("user "+user, func(t *testing.T) {
			runSuite(t, "TestProcessConformance", "/tests/e2e.test", parts, noHostName, func(argv ...string) *exec.Cmd {
				return engineCommand(t.Context(), e, append([]string{"run", "--rm", "--network", "none", "--user", user, "--workdir", "/tmp", "--volume", dir + ":/tests:ro", image}, argv...)...)
			})
		})
	}
}

// noHostName is what does not hold without namespaces.
var noHostName = map[string]string{"AbuseCatalogue/73_identity": "code has the container's host name, which is its id"}

// noOwnProc is what does not hold where /proc is the container's, and code shares the caller's uid.
var noOwnProc = map[string]string{
	"AbuseCatalogue/32_proc_handles":            "code can list the numbers of descriptors of processes of its uid; what they lead to stays closed",
	"AbuseCatalogue/36_privileges":              "it reads its own /proc/self/status, which is closed",
	"AbuseCatalogue/52_unfilter":                "the same",
	"Abuse84ReachTheAgent/84_agent's_own_files": "the numbers of descriptors, as above",
	"Abuse84WriteToAnotherRun":                  "it takes its own process, which has another number in this /proc, for another run's",
	"Acceptance18BackgroundChild":               "code looks for the child by /proc/PID/cmdline, which is closed",
}

// TestSuiteInPod: the same in a pod that passes Pod Security's restricted; and what namespaces hold in one that has no seccomp profile,
// where the container's /proc is in the way of a sandbox's own.
func TestSuiteInPod(t *testing.T) {
	dir := withSuite(t)
	c := testcluster.Start(t)
	c.Images(t)
	image, err := testengine.ImagesMark(t.Context())
	testimage.Must(t, err)
	build, err := exec.Command(filepath.Join(root, "test/cluster/build")).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []struct {
		isolation, test, level, security string
		without                          map[string]string
	}{
		{"process", "TestProcessConformance", "restricted",
			`{"allowPrivilegeEscalation": false, "runAsNonRoot": true, "runAsUser": 61844, "runAsGroup": 61844, "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"}}`, noHostName},
		{"namespace", "TestConformance", "privileged", `{"runAsUser": 61844, "runAsGroup": 61844, "seccompProfile": {"type": "Unconfined"}}`, noOwnProc},
	} {
		t.Run(p.isolation, func(t *testing.T) {
			namespace := c.NamespaceOf(t, p.level)
			kubectl := func(args ...string) *exec.Cmd {
				return exec.CommandContext(t.Context(), filepath.Join(strings.TrimSpace(string(build)), "kubectl"), append([]string{"--kubeconfig", c.Kubeconfig, "-n", namespace}, args...)...)
			}
			run := func(in []byte, args ...string) {
				t.Helper()
				cmd := kubectl(args...)
				cmd.Stdin = bytes.NewReader(in)
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("kubectl %q: %v\n%s", args, err, out)
				}
			}
			// The shell collects the processes that others leave, as the first of a container must.
			run(fmt.Appendf(nil, `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "suite"}, "spec": {"containers": [{
				"name": "suite", "image": %q, "command": ["sh", "-c", "sleep infinity & wait"], "workingDir": "/tmp", "securityContext": %s}]}}`, image, p.security), "apply", "-f", "-")
			run(nil, "wait", "--for=condition=Ready", "pod/suite", "--timeout=2m")
			program, err := os.ReadFile(filepath.Join(dir, "e2e.test"))
			if err != nil {
				t.Fatal(err)
			}
			run(program, "exec", "-i", "suite", "--", "sh", "-c", "cat >/tmp/e2e.test && chmod +x /tmp/e2e.test")
			runSuite(t, p.test, "/tmp/e2e.test", []part{attacks}, p.without, func(argv ...string) *exec.Cmd {
				return kubectl(append([]string{"exec", "suite", "--"}, argv...)...)
			})
		})
	}
}
