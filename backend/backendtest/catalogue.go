package backendtest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/test/abuse"
)

// abuseCatalogue runs every program of package abuse in a sandbox of its own and
// checks what became of it.
func (s *suite) abuseCatalogue(t *testing.T) {
	onHost(t, "gcc")
	s.plantCanaries(t)
	hidden := hostTexts()
	all := abuse.Cases()
	options := make([]llmsandbox.Options, len(all))
	for i, c := range all {
		language := c.Language
		if language == "c" {
			language = "python"
		}
		options[i] = llmsandbox.Options{Language: language, Limits: llmsandbox.Limits{
			Memory: c.Limits.Memory, PIDs: c.Limits.PIDs, Disk: c.Limits.Disk, Output: c.Limits.Output, Timeout: c.Limits.Timeout,
		}}
	}
	sandboxes := s.openings(t, options)
	for i, c := range all {
		t.Run(fmt.Sprintf("%02d %s", c.Number, c.Name), func(t *testing.T) {
			switch c.Name {
			case "read_only_root":
				s.has(t, ReadOnlyRoot)
			case "include_shadow":
				if _, root := s.Lacks[NotRoot]; root {
					s.has(t, UsersApart)
				}
			}
			sb := sandboxes.use(t, i, hellos[options[i].Language].program)
			c := s.asDeclared(t, sb, c)
			run := attack(t, sb, c)
			start := time.Now()
			res, err := run()
			if err != nil && !errors.Is(err, llmsandbox.ErrLost) {
				t.Fatal(err)
			}
			o := abuse.Outcome{Status: string(res.Status), Stdout: res.Stdout, Stderr: res.Stderr, Error: res.Reason, Duration: time.Since(start)}
			if err != nil {
				o.Error = err.Error()
			}
			t.Logf("%s after %v, error %q, stdout %.200q, stderr %.200q", res.Status, o.Duration, o.Error, res.Stdout, res.Stderr)
			if res.Status != llmsandbox.StatusLost && !s.diedForMemory(t, sb) {
				if staysFull[c.Name] {
					o.Processes = processesIfItLives(t, sb)
				} else {
					answers(t, sb)
					o.Processes = processes(t, sb)
				}
			}
			if c.Name == "proc_handles" && !control(sb, "agent").Enforced {
				// A kernel shows the numbers of its descriptors and of its namespaces of an
				// agent that it does not protect. What they lead to is asked for apart.
				o.Stdout = withoutReports(o.Stdout, "/proc/1/fd", "/proc/1/ns/mnt")
			}
			if _, lacks := s.Lacks[LinuxKernel]; lacks {
				o.Stdout = withoutReports(o.Stdout, ofOtherKernels[c.Name]...)
			}
			if _, lacks := s.Lacks[NotRoot]; lacks && c.Name == "privileges" {
				o.Stdout = withoutReports(o.Stdout, "not root", "CapPrm is empty", "CapEff is empty", "setuid 0", "setgid 0", "setgroups 0", "setresuid 0", "chown to root", "su", "sudo")
			}
			if _, lacks := s.Lacks[UsersApart]; lacks && c.Name == "proc_handles" {
				o.Stdout = withoutReports(o.Stdout, "/proc/1/fd", "/proc/1/oom_score_adj", "shadow above the working folder")
			}
			if _, lacks := s.Lacks[KernelFiles]; lacks && c.Name == "memory_devices" {
				o.Stdout = withoutReports(o.Stdout, "/proc/vmallocinfo")
			}
			if err := c.Check(o, hidden...); err != nil {
				t.Errorf("%v\nstatus %s, signal %q, error %q\nstdout: %s\nstderr: %s",
					err, res.Status, res.Signal, res.Reason, clip(res.Stdout), clip(res.Stderr))
			}
		})
	}
}

// ofOtherKernels are the tries of programs that succeed where the kernel is not Linux, and
// that harm no other process there: only the kernel inside spares a process, and the devices
// are that kernel's own, which no code has the privilege to use.
var ofOtherKernels = map[string][]string{
	"kernel_settings": {"lower oom_score_adj"},
	"devices":         {"/dev/fuse", "character device /dev/fuse", "/dev/net", "character device /dev/net/tun"},
}

// withoutReports leaves out what a program reports of these tries.
func withoutReports(reports string, tries ...string) string {
	var kept strings.Builder
	for line := range strings.Lines(reports) {
		if !slices.ContainsFunc(tries, func(try string) bool { return strings.Contains(line, strconv.Quote(try)) }) {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

// diedForMemory reports whether a sandbox that may die whole for lack of memory did, and says so.
// Files and their names take memory, too.
func (s *suite) diedForMemory(t *testing.T, sb *llmsandbox.Sandbox) bool {
	t.Helper()
	if _, lacks := s.Lacks[OOMAlone]; !lacks {
		return false
	}
	_, err := sb.Exec(testContext(t), []string{"true"}, nil)
	return err != nil && strings.Contains(err.Error(), "for memory")
}

// held names the control that alone stops a program. Without it the program would
// take the whole machine's.
var held = map[string]string{
	"fork_bomb_shell": "pids", "fork_bomb": "pids", "fork_count": "pids", "thread_bomb": "pids", "zombies": "pids",
	"memory": "memory", "memory_of_many": "memory", "memory_of_memfd": "memory", "memory_of_shm": "memory",
	"memory_of_shared_map": "memory", "kernel_buffers": "memory", "kernel_quotas": "memory",
}

// seenByWatch are the programs whose memory a watch of processes sees, or that have none to take: it is mapped.
var seenByWatch = map[string]bool{"memory_of_many": true, "memory_of_shm": true, "memory_of_shared_map": true}

// staysFull are the programs whose files, shared memory and semaphores outlive their run and
// leave the sandbox no memory for another one. They harm no sandbox but their own, which the
// next program may end: where the agent may not lower its score, the kernel may take it.
var staysFull = map[string]bool{"kernel_quotas": true, "memory_of_shm": true}

// asDeclared changes what must become of a case to what the sandbox declares it
// enforces, or skips it where that is nothing.
func (s *suite) asDeclared(t *testing.T, sb *llmsandbox.Sandbox, c abuse.Case) abuse.Case {
	t.Helper()
	if _, lacks := s.Lacks[NoHostPaths]; lacks && c.Name == "machine" {
		c.Want.Never = slices.DeleteFunc(slices.Clone(c.Want.Never), func(p string) bool { return strings.Contains(p, "lower|upper|work") })
	}
	if c.Name == "kill_pid_1" && !control(sb, "agent").Enforced {
		c.Want.Status, c.Want.Output = "lost", nil
	}
	if c.Name == "memory_of_shm" && sb.Capabilities().Isolation == "process" {
		c.Want.Output = []string{`stopped by EACCES`} // the machine's
	}
	if disk := control(sb, "disk"); !disk.Enforced && disk.By != "" && (c.Name == "disk" || c.Name == "inodes") {
		c.Want.Output = append([]string{`stopped by E(NOSPC|FBIG)`}, c.Want.Output[1:]...)
		c.Want.Or = append(slices.Clone(c.Want.Or), abuse.End{Status: "killed", Says: "disk limit", Why: "the agent looks now and then, and kills all"})
	}
	name, limited := held[c.Name]
	if !limited {
		return c
	}
	if _, lacks := s.Lacks[OOMAlone]; lacks && name == "memory" {
		c.Want.Or = append(slices.Clone(c.Want.Or), abuse.End{Status: "lost", Says: "for memory", Why: "all of the sandbox may go for lack of memory"})
	}
	declared := control(sb, name)
	switch {
	case declared.Enforced:
	case name == "pids" && declared.By != "": // a limit of the user's processes: weaker, but it stops these
	case c.Name == "memory" && declared.By != "":
		c.Want.Or = append(slices.Clone(c.Want.Or), abuse.End{Status: "error", Says: "MemoryError", Why: "a limit of each process lets it go on"})
	case declared.By == "watched" && seenByWatch[c.Name]:
	default:
		needs(t, sb, name)
	}
	return c
}

// attack returns what runs a case's program. C is compiled outside, and before: the attack is
// the program. It is static, so that any image runs it.
func attack(t *testing.T, sb *llmsandbox.Sandbox, c abuse.Case) func() (*llmsandbox.Result, error) {
	t.Helper()
	ctx := testContext(t)
	if c.Language != "c" {
		return func() (*llmsandbox.Result, error) {
			return sb.Run(ctx, c.Source, &llmsandbox.RunOptions{Language: c.Language})
		}
	}
	if err := sb.WriteFileFrom(ctx, here(sb, "/sandbox/attack"), bytes.NewReader(compileC(t, c.Source)), 0o755); err != nil {
		t.Fatal(err)
	}
	return func() (*llmsandbox.Result, error) { return sb.Exec(ctx, []string{here(sb, "/sandbox/attack")}, nil) }
}

func compileC(t *testing.T, source string) []byte {
	t.Helper()
	dir := t.TempDir()
	in, out := filepath.Join(dir, "attack.c"), filepath.Join(dir, "attack")
	if err := os.WriteFile(in, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := exec.Command("gcc", "-static", "-o", out, in).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, text)
	}
	program, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return program
}
