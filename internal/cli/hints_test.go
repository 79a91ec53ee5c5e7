package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/llmsandbox/llmsandbox"
)

func TestHintLines(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"main.py", "x.py", "helper.py"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	in := func(name string) hinted {
		return hinted{flags: runHints, file: filepath.Join(dir, name), lang: "python"}
	}
	helper := filepath.Join(dir, "helper.py")
	for _, c := range []struct {
		name string
		at   hinted
		in   []llmsandbox.Hint
		want []string
	}{
		{name: "library", at: hinted{flags: runHints}, in: []llmsandbox.Hint{{Kind: llmsandbox.HintLibrary, Subject: "six"}}, want: []string{"six is not installed: add --lib six"}},
		{name: "a script's list", at: hinted{flags: runHints, script: true}, in: []llmsandbox.Hint{{Kind: llmsandbox.HintLibrary, Subject: "six"}}, want: []string{"six is not installed: add --lib-from-script for the libraries that the script lists"}},
		{name: "exec has no --lib", at: hinted{flags: execHints}, in: []llmsandbox.Hint{{Kind: llmsandbox.HintLibrary, Subject: "six"}, {Kind: llmsandbox.HintMemory}, {Kind: llmsandbox.HintNetwork}}},
		{name: "beside a main file", at: in("main.py"), in: []llmsandbox.Hint{{Kind: llmsandbox.HintLibrary, Subject: "helper"}},
			want: []string{"helper.py is not in the sandbox: add --file " + helper + ", or run the directory: llmsandbox run " + dir}},
		{name: "beside another file", at: in("x.py"), in: []llmsandbox.Hint{{Kind: llmsandbox.HintFile, Subject: "helper"}}, want: []string{"helper.py is not in the sandbox: add --file " + helper}},
		{name: "beside nothing", at: in("x.py"), in: []llmsandbox.Hint{{Kind: llmsandbox.HintFile, Subject: "other"}}},
		{name: "the file itself", at: in("x.py"), in: []llmsandbox.Hint{{Kind: llmsandbox.HintFile, Subject: "x"}}},
		{name: "no network", at: hinted{flags: replHints}, in: []llmsandbox.Hint{{Kind: llmsandbox.HintNetwork}}, want: []string{"the sandbox has no network: add --network allow=HOST"}},
		{name: "hosts", at: hinted{flags: runHints}, in: []llmsandbox.Hint{{Kind: llmsandbox.HintNetwork, Subject: "a.test:443"}, {Kind: llmsandbox.HintNetwork, Subject: "b.test:80"}},
			want: []string{"the sandbox may not reach a.test:443, b.test:80: add --network allow=a.test:443,b.test:80"}},
		{name: "isolation", at: hinted{flags: execHints}, in: []llmsandbox.Hint{{Kind: llmsandbox.HintIsolation, Subject: "/tmp"}, {Kind: llmsandbox.HintIsolation}}, want: []string{
			"/tmp is not the sandbox's own with the isolation process: use the directory in TMPDIR, or open the sandbox with --isolation namespace where that works",
			"code may not listen on a port with the isolation process: open the sandbox with --isolation namespace where that works",
		}},
		{name: "timeout of exec", at: hinted{flags: execHints}, in: []llmsandbox.Hint{{Kind: llmsandbox.HintTimeout}}, want: []string{"to give it more time, add --timeout 5m"}},
		{name: "limits", at: hinted{flags: runHints}, in: []llmsandbox.Hint{{Kind: llmsandbox.HintMemory}, {Kind: llmsandbox.HintOutput}, {Kind: llmsandbox.HintDisk}}, want: []string{
			"to give it more memory, add --memory 2g", "to keep more, add --output 100m, or write to a file and add --out FILE", "the sandbox's disk is full: add --disk 5g",
		}},
	} {
		if diff := cmp.Diff(c.want, c.at.lines(c.in)); diff != "" {
			t.Errorf("%s: differs (-want +got):\n%s", c.name, diff)
		}
	}
}
