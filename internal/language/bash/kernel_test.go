//go:build unix

package bash

import (
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/kerneltest"
)

func TestKernel(t *testing.T) {
	kerneltest.Need(t, &Language)
	kerneltest.Suite(t, &Language, kerneltest.Cells{
		State: []string{"x=40", "add() { echo $((x + $1)); }\ncd /", "echo sum $(add 2)\npwd"},
		Out:   "sum 42\n/\n",
		Fails: "echo a\necho b\n(exit 9)", Failure: [3]string{"exit code", "9", ""},
		Sleep: "echo sleeping; while :; do sleep 1000; done", Loop: "echo looping; f() { while :; do :; done; }; f",
		Stderr: "echo careful >&2", Child: "(echo child; echo fault >&2; ls /proc/self/fd)",
		Exit: "echo bye; exit 3", Crash: "kill -9 $$",
		Define: "zebra=12", Complete: "$zeb", Completes: "$zebra",
		Inspect: "zebra", Inspects: "12", Variable: [2]string{"zebra", "string"},
	})
}

func TestKernelShell(t *testing.T) {
	kerneltest.Need(t, &Language)
	k := kerneltest.Start(t, &Language)
	k.Input = []string{"Ann Lee"}
	for code, want := range map[string]string{
		"false": "", "break; echo on": "", "echo ${nope?unset}": "",
		`read -p "name? " -r first last; echo "$last $first"`: "Lee Ann\n",
		"while read -r l; do echo \"<$l>\"; done <<<$'a\\nb'": "<a>\n<b>\n",
		"echo 'ä \"q\" \\'; echo $'\\x01'":                    "ä \"q\" \\\n\x01\n",
	} {
		if e := k.Run(code); e.Stdout != want || e.Lost {
			t.Errorf("%s: %+v, want Stdout = %v, Lost false", code, e, want)
		}
	}
	if len(k.Prompts) != 1 || k.Prompts[0] != "name? " {
		t.Errorf("prompts %q, want len(k.Prompts) = 1, k.Prompts[0] = \"name? \"", k.Prompts)
	}
	k.Run("(exit 4)")
	if e := k.Run("echo $?"); e.Stdout != "4\n" {
		t.Errorf("the last cell's exit code: %q, want \"4\\n\"", e.Stdout)
	}
}
