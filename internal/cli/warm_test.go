package cli

import (
	"slices"
	"testing"

	"github.com/spf13/pflag"
)

// A flag of run that says which sandbox it has is for one that waits, too; the others are named here.
func TestWaitFlagsAreAll(t *testing.T) {
	ofRun := []string{
		"code", "arg", "stdin", "workdir", "standard", "timeout", "output", "file", "out", "artifacts", "notebook", "keep-going", "tty", "raw", "json", "capabilities",
		"text-errors", "keep-children", "policy", "policy-warn", "quiet", "verbose", "warm",
		"lib-from-script",                                                       // adds to lib
		"keep", "ttl", "commit", "overwrite-tag", "allow-install", "keep-files", // never with --warm
	}
	wait := waitFlags(&sandboxFlags{})
	newRunCommand().Flags().VisitAll(func(f *pflag.Flag) {
		if wait.Lookup(f.Name) == nil && !slices.Contains(ofRun, f.Name) {
			t.Errorf("--%s is no flag of a sandbox that waits, and no other run may have that sandbox: register it with the others of the sandbox", f.Name)
		}
	})
}

func TestSandboxArgs(t *testing.T) {
	args := func(line ...string) []string {
		t.Helper()
		cmd := newRunCommand()
		if err := cmd.ParseFlags(line); err != nil {
			t.Fatal(err)
		}
		f := &runFlags{}
		return f.sandboxArgs(cmd.Flags())
	}
	for name, c := range map[string]struct{ line, want []string }{
		"none":              {},
		"of the run only":   {line: []string{"--json", "-c", "1", "--timeout", "3s", "--quiet", "--file", "a"}},
		"of the sandbox":    {line: []string{"--memory", "1g", "--json", "--best-effort"}, want: []string{"--best-effort=true", "--memory=1g"}},
		"many, in order":    {line: []string{"-e", "B=1,2", "-e", "A=x y"}, want: []string{"--env=B=1,2", "--env=A=x y"}},
		"how long it waits": {line: []string{"--idle", "1m"}, want: []string{"--idle=1m"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := args(c.line...)
			if !slices.Equal(got, c.want) {
				t.Fatalf("%q, want %q", got, c.want)
			}
			var f sandboxFlags
			if err := waitFlags(&f).Parse(got); err != nil {
				t.Fatal(err)
			}
		})
	}
}
