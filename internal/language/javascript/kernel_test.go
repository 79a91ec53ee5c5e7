//go:build unix

package javascript

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/kerneltest"
)

func TestKernel(t *testing.T) {
	kerneltest.Need(t, &Language)
	kerneltest.Suite(t, &Language, kerneltest.Cells{
		State:     []string{"const x = 21; let y = 2; function f(a) { return a * y }\nclass Box { constructor(v) { this.v = v } }", "console.log('Result:', f(x)); new Box(f(x)).v"},
		Out:       "Result: 42\n",
		Value:     "42",
		Fails:     "const a = 1;\n\nthrow new TypeError('no ' + a)",
		Failure:   [3]string{"TypeError", "no 1", "cell[1]:3:7"},
		Syntax:    "const b = 1\nlet = = 2",
		SyntaxAt:  "cell[1]:2",
		Sleep:     "console.log('go'); await new Promise(r => setTimeout(r, 1e6))",
		Loop:      "console.log('go'); while (true) {}",
		Stderr:    "console.error('careful')",
		Child:     "require('child_process').execSync('echo child; echo fault >&2; ls /proc/self/fd', {stdio: 'inherit'})",
		Input:     "const name = prompt('name? '); 'hello ' + name",
		Prompt:    "name? ",
		InputIs:   "'hello Ann'",
		Exit:      "console.log('bye'); process.exit(3)",
		Crash:     "process.kill(process.pid, 'SIGKILL'); while (true) {}",
		Define:    "let longName = 'text'",
		Complete:  "longN",
		Completes: "longName",
		Member:    "longName.toUpp",
		MemberIs:  "toUpperCase",
		Inspect:   "longName",
		Inspects:  "string",
		Variable:  [2]string{"longName", "string"},
	})
}

func TestKernelCells(t *testing.T) {
	kerneltest.Need(t, &Language)
	k := kerneltest.Start(t, &Language)
	if err := os.WriteFile(filepath.Join(k.Workdir, "mine.mjs"), []byte("export const five = 5; export default 'mine'"), 0o644); err != nil {
		t.Fatal(err)
	}
	k.Show([][3]string{
		{"const a = 1", "", ""},
		{"const a = 2; a", "2", ""},
		{"await new Promise(r => setTimeout(() => r('late'), 1))", "'late'", ""},
		{"import fs, { existsSync as there } from 'node:fs';\nimport * as p from \"path\"\nimport 'os'", "", ""},
		{"[there('/'), fs === require('fs'), p.join('a', 'b')]", "[ true, true, 'a/b' ]", ""},
		{"import mine, { five } from './mine.mjs'; mine + five", "'mine5'", ""},
		{"(await import('./mine.mjs')).five", "5", ""},
		{"import.meta.url.startsWith('file:')", "true", ""},
		{"`import x from 'y' ${'import(1)'}` + /import ('a')/.source // import z from 'q'", "\"import x from 'y' import(1)import ('a')\"", ""},
		{"import {\n  basename,\n  dirname\n} from 'path'\nnew Error().stack.match(/cell.*/)[0]", "'cell[10]:5:1'", ""},
		{"{ a: 1 }; ({ a: 1 })", "{ a: 1 }", ""},
		{"10n ** 20n", "100000000000000000000n", ""},
		{"undefined", "", ""},
		{"Symbol('x')", "Symbol(x)", ""},
		{"setTimeout(() => console.log('tick'), 1); 1", "1", ""},
		{"await new Promise(r => setTimeout(r, 50))", "", "tick\n"},
		{"process.stdout.write('x'.repeat(300000)); 2", "2", strings.Repeat("x", 300000)},
	})
	if e := k.Run("Promise.reject(new Error('nobody')); await new Promise(r => setTimeout(r, 10))"); e.Status != "ok" || !strings.Contains(e.Stderr, "Uncaught (in promise) Error: nobody") {
		t.Errorf("%+v, want Status = \"ok\", Stderr containing \"Uncaught (in promise) Error: nobody\"", e)
	}
	if e := k.Run("throw 'text'"); e.Failure == nil || e.Failure.Message != "'text'" || !strings.Contains(e.Failure.Traceback, "at cell[") {
		t.Errorf("%+v, want Failure not nil, Message = \"'text'\", Traceback containing \"at cell[\"", e.Failure)
	}
	k.Input = []string{"one", "two"}
	lines := "const rl = require('readline').createInterface({ input: process.stdin }); const got = []; for await (const l of rl) got.push(l); got"
	if e := k.MustRun(lines); e.Value["text/plain"] != "[ 'one', 'two' ]" {
		t.Errorf("%q, want e.Value[\"text/plain\"] = \"[ 'one', 'two' ]\"", e.Value)
	}
	if e := k.MustRun("prompt('?')"); e.Value["text/plain"] != "null" {
		t.Errorf("without input: %q, want e.Value[\"text/plain\"] = \"null\"", e.Value)
	}
	t.Logf("round trip %v", kerneltest.RoundTrip(k, "1+1", 100))
}

// TestInterruptBesideCode: an interrupt that comes as the code begins to wait is not lost, and
// one that comes after its cell is not the next cell's.
func TestInterruptBesideCode(t *testing.T) {
	kerneltest.Need(t, &Language)
	k := kerneltest.Start(t, &Language)
	for i := range 50 {
		if e := k.RunWhile("console.log('go'); await new Promise(() => {})", k.Interrupt); e.Status != "interrupted" {
			t.Fatalf("cell %d: %s %+v, want \"interrupted\"", i, e.Status, e.Failure)
		}
		k.Interrupt() // again: a signal, and the request of a cell that is over
		k.MustRun("1")
	}
}
