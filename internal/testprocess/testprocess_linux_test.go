package testprocess

import (
	"os"
	"os/exec"
	"slices"
	"testing"

	"github.com/llmsandbox/llmsandbox/backend/backendtest"
)

func TestFinds(t *testing.T) {
	const text = "a text that no other process has"
	cmd := exec.Command("sh", "-c", "echo up; read line; exit 0", text)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 3)); err != nil { // by then it is what it will be
		t.Fatal(err)
	}
	found, err := With(text)
	if err != nil || len(found) != 1 || found[0].PID != cmd.Process.Pid || found[0].Resident == 0 ||
		found[0].Command != "sh -c echo up; read line; exit 0 "+text+" " {
		t.Errorf("%+v, %v, want no error, len(found) = 1, PID = %v, Resident != 0, Command = %q", found, err, cmd.Process.Pid, "sh -c echo up; read line; exit 0 "+text+" ")
	}
	beside, err := Beside(os.Getpid())
	if err != nil || !slices.ContainsFunc(beside, func(p backendtest.Process) bool { return p.PID == cmd.Process.Pid }) {
		t.Errorf("%+v, %v: want the child among them", beside, err)
	}
	if !slices.IsSortedFunc(beside, func(a, b backendtest.Process) int { return a.PID - b.PID }) {
		t.Errorf("processes are %+v, want them in the order of their ids", beside)
	}
	if err := in.Close(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait() // how it ends does not matter
	for _, find := range []func() ([]backendtest.Process, error){
		func() ([]backendtest.Process, error) { return With(text) },
		func() ([]backendtest.Process, error) { return Beside(cmd.Process.Pid) },
	} {
		if found, err := find(); err != nil || len(found) != 0 {
			t.Errorf("of one that has ended: %+v, %v, want no error, no found", found, err)
		}
	}
}
