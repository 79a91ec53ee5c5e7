//go:build linux

package guest

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// TestAdoptsOnlyWhatIsRestricted: what comes in is looked at, whatever is said of it.
func TestAdoptsOnlyWhatIsRestricted(t *testing.T) {
	child := exec.Command("sleep", "60")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		child.Process.Kill()
		child.Wait()
	})
	proc, err := openProc()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		say  []record
		want error
	}{
		"nothing":                        {nil, io.EOF},
		"a process that is unrestricted": {[]record{{kind: recStarted, arg: int32(child.Process.Pid), value: uint32(os.Getpid())}}, errNotRestricted},
		"somebody else's":                {[]record{{kind: recStarted, arg: int32(child.Process.Pid), value: 1}}, errNotRestricted},
		"the agent":                      {[]record{{kind: recStarted, arg: int32(os.Getpid()), value: uint32(os.Getppid())}}, errNotRestricted},
		"none":                           {[]record{{kind: recStarted, arg: 1 << 30, value: 1}}, errNotRestricted},
		"a negative one":                 {[]record{{kind: recStarted, arg: -1, value: 1}}, errNotRestricted},
		"an end":                         {[]record{{kind: recExited, arg: int32(child.Process.Pid), value: uint32(os.Getpid())}}, errNotRestricted},
	} {
		a := &Agent{proc: proc, null: int(os.Stdin.Fd()), processes: map[uint64]*process{}, opts: Options{MaxProcesses: 2, BufferSize: 1 << 16, CodeUID: 54321}}
		d, err := a.Adopt("tag", nil)
		if err != nil {
			t.Fatal(err)
		}
		status, err := unix.Dup(d.Descriptors[5])
		if err != nil {
			t.Fatal(err)
		}
		for _, rec := range c.say {
			if _, err := unix.Write(status, (*[recordSize]byte)(unsafe.Pointer(&rec))[:]); err != nil {
				t.Fatal(err)
			}
		}
		unix.Close(status)
		if err := d.Wait(); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		if len(a.processes) > 0 || a.live != 0 {
			t.Errorf("%s: the agent has %d processes, %d live, want none", name, len(a.processes), a.live)
		}
	}
}

func TestCheckRestricted(t *testing.T) {
	const status = "Name:\tpython3\nUid:\t1000\t1000\t1000\t1000\nGid:\t1001\t1001\t1001\t1001\nThreads:\t1\nCapInh:\t0000000000000000\n" +
		"CapPrm:\t0000000000000000\nCapEff:\t0000000000000000\nCapBnd:\t000001ffffffffff\nCapAmb:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n"
	entry := Entry{UID: 1000, GID: 1001, Seccomp: []byte{0}}
	if err := checkRestricted([]byte(status), entry); err != nil {
		t.Errorf("a process that is restricted: %v", err)
	}
	for name, change := range map[string][2]string{
		"another uid":           {"Uid:\t1000\t1000", "Uid:\t1000\t0"},
		"another gid":           {"Gid:\t1001\t1001", "Gid:\t0\t1001"},
		"two threads":           {"Threads:\t1", "Threads:\t2"},
		"a permitted one":       {"CapPrm:\t0000000000000000", "CapPrm:\t0000000000200000"},
		"an effective one":      {"CapEff:\t0000000000000000", "CapEff:\t000001ffffffffff"},
		"an inheritable one":    {"CapInh:\t0000000000000000", "CapInh:\t8000000000000000"},
		"an ambient one":        {"CapAmb:\t0000000000000000", "CapAmb:\t0000000000000001"},
		"privileges by exec":    {"NoNewPrivs:\t1", "NoNewPrivs:\t0"},
		"no filter":             {"Seccomp:\t2", "Seccomp:\t0"},
		"no line":               {"CapEff:\t0000000000000000\n", ""},
		"a line that is no set": {"CapEff:\t0000000000000000", "CapEff:\t"},
	} {
		text := strings.Replace(status, change[0], change[1], 1)
		if err := checkRestricted([]byte(text), entry); !errors.Is(err, errNotRestricted) {
			t.Errorf("%s: %v, want errNotRestricted", name, err)
		}
	}
}
