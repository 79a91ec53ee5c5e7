package declared

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

func scan(t *testing.T, l *language.Language, code string) language.Facts {
	t.Helper()
	var facts language.Facts
	if err := language.Metered(context.Background(), len(code), func(m *language.Meter) { facts = l.Scan(m, []byte(code)) }); err != nil {
		t.Fatal(err)
	}
	return facts
}

func builtin(t *testing.T, name string) *language.Language {
	t.Helper()
	i := slices.IndexFunc(Builtin(), func(l *language.Language) bool { return l.Name == name })
	if i < 0 {
		t.Fatalf("there is no %s", name)
	}
	return Builtin()[i]
}

// TestScan: what a policy is told of programs. Calls have an exclamation mark behind them.
func TestScan(t *testing.T) {
	for _, c := range []struct{ lang, code, uses, imports, strings string }{
		{"perl", `use strict; use IO::Socket; system("ls"); # exec("x")`, "strict IO::Socket system!", "strict IO::Socket", "ls"},
		{"perl", "my $system = 1; $x->exec; `id`; \"system('x')\"", "my `!", "", "id|system('x')"},
		{"perl", "=pod\n\nsystem\n\n=cut\nexec 'a'; \n=head1\nsystem()\n=cut\nfork()", "pod system cut exec fork!", "", "a"},
		{"perl", `require "a.pl"; do { fork() }; do 'b.pl'`, "fork!", "a.pl b.pl", "a.pl|b.pl"},
		{"php", `<?php use function Foo\bar, A\{B, C\D}; SYSTEM ("a"); $f("x"); $o->exec(); include_once('x.php');`, `php foo\bar a a\b b a\c\d c\d system!`, `foo\bar a a\b a\c\d x.php`, "a|x|x.php"},
		{"php", `<?php return \system("a");`, `php return\system! system!`, "", "a"},
		{"lua", "local s = require('socket'); os . execute('a') --[[ io.popen() ]] x = [[load()]] .. os.time()", "local s os.execute! execute! x os.time!", "socket", "socket|a|load()"},
		{"lua", "os--[[x]].--[[y]]execute()", "os.execute! execute!", "", ""},
		{"rust", "use std::{fs, process::{Command, self}}; // unsafe\nfn f<'a>(x: &'a str) -> char { '\"' } /* a /* b */ unsafe */ std::env::var(r#\"A\"B\"#)",
			"std std::fs fs std::process process std::process::Command Command std::process::self self fn f a x a str char std::env::var!", "std std::fs std::process std::process::Command std::process::self", "|A\"B"},
		{"julia", "using A, B.C: d\n#= run() =# run(`ls`) 'a' * \"\"\"x\"y\"\"\"", "A B.C d run! `! a", "A B.C", "ls|x\"y"},
		{"csharp", "using static System.IO.File; var s = @\"a\"\"b\\\"; Process . Start(\"x\") // Run()", "System.IO.File var s Process.Start! Start!", "System.IO.File", "a\"\"b\\|x"},
		{"kotlin", "import java.net.Socket\nval x = \"a\\\"b\"; y?.z() 'c'", "java.net.Socket val x y?.z! c", "java.net.Socket", "a\\\"b"},
		{"sql", "SELECT load_extension('it''s') -- writefile()\n\"writefile\" 12e5x", "select load_extension!", "", "it''s|writefile"},
		{"lua", "x = \"not closed\nos.execute()", "x os.execute!", "", "not closed"},
	} {
		t.Run(c.lang, func(t *testing.T) {
			facts := scan(t, builtin(t, c.lang), c.code)
			var uses, imports, values []string
			for _, u := range facts.Uses {
				if u.Call {
					u.Name += "!"
				}
				uses = append(uses, u.Name)
			}
			for _, i := range facts.Imports {
				imports = append(imports, i.Module)
			}
			for _, s := range facts.Strings {
				values = append(values, s.Value)
			}
			got := []string{strings.Join(uses, " "), strings.Join(imports, " "), strings.Join(values, "|")}
			if want := []string{c.uses, c.imports, c.strings}; !slices.Equal(got, want) {
				t.Errorf("%s\ngot  %q\nwant %q", c.code, got, want)
			}
			if !strings.Contains(facts.Problem, "only the words") {
				t.Errorf("problem %q, want that only the words are read", facts.Problem)
			}
		})
	}
}

// TestScanIsBounded: no code is read for longer than code of its size may take, or stops the reading.
func TestScanIsBounded(t *testing.T) {
	for name, code := range map[string]string{
		"groups":   "use " + strings.Repeat("a::{", 50_000),
		"names":    strings.Repeat("a::", 200_000),
		"imports":  strings.Repeat("use ", 100_000),
		"commas":   "use " + strings.Repeat("a,", 100_000),
		"nested":   strings.Repeat("/*", 200_000),
		"gaps":     strings.Repeat("a /**/", 100_000),
		"strings":  strings.Repeat("\"", 300_001),
		"prefixes": "use a::{" + strings.Repeat("b::{c},", 50_000),
	} {
		t.Run(name, func(t *testing.T) {
			checkFacts(t, builtin(t, "rust"), []byte(code))
		})
	}
}

// checkFacts checks what holds for the facts of any code.
func checkFacts(t *testing.T, l *language.Language, code []byte) {
	t.Helper()
	facts := scan(t, l, string(code))
	if facts.Problem == "" {
		t.Error("there is no problem, want that only the words are read")
	}
	check := func(s language.Span) {
		if s.Start < 0 || s.Start > s.End || s.End > len(code) {
			t.Errorf("span %v of %d bytes, want one in them", s, len(code))
		}
	}
	for _, s := range facts.Comments {
		check(s)
	}
	for _, s := range facts.Strings {
		check(s.Span)
	}
	for _, i := range facts.Imports {
		check(i.Span)
	}
	for _, u := range facts.Uses {
		check(u.Span)
	}
}

// FuzzScan: any code is read, in whatever language.
func FuzzScan(f *testing.F) {
	for i, l := range Builtin() {
		for _, e := range l.Details.Examples {
			f.Add(byte(i), []byte(e.Code))
		}
	}
	f.Add(byte(0), []byte("use a::{b, c::{d}}; /* /* */ */ \"\\\"\" `id` 'x' [[y]] @\"\"\"\""))
	f.Fuzz(func(t *testing.T, lang byte, code []byte) {
		checkFacts(t, Builtin()[int(lang)%len(Builtin())], code)
	})
}
