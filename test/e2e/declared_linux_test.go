package e2e

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/language/declared"
)

// A declaredProgram is what the tests run in a language that a file declares.
type declaredProgram struct {
	hello string
	// greet greets its first argument, if arguments are taken, and a line of standard input, and exits with 7.
	greet, greeting string
	fail            string // by an error that nothing catches
	failed          string // what is said of it, with the file's name
	exit            int    // with that error
	endless         string
}

var declaredPrograms = map[string]declaredProgram{
	"perl": {
		hello: `print "hello\n";`, greet: `my $s = <STDIN>; print "hi $ARGV[0] $s"; exit 7;`, greeting: "hi a b* there\n",
		fail: "\ndie 'boom';", failed: "boom at /sandbox/main.pl line 2.", exit: 255, endless: "1 while 1;",
	},
	"php": {
		hello: `<?php echo "hello\n";`, greet: `<?php echo "hi ", $argv[1], " ", fgets(STDIN); exit(7);`, greeting: "hi a b* there\n",
		fail: "<?php\nthrow new Exception('boom');", failed: "Uncaught Exception: boom in /sandbox/main.php:2", exit: 255, endless: "<?php while (true);",
	},
	"lua": {
		hello: `print("hello")`, greet: `print("hi " .. arg[1] .. " " .. io.read()) os.exit(7)`, greeting: "hi a b* there\n",
		fail: "\nerror('boom')", failed: "/sandbox/main.lua:2: boom", exit: 1, endless: "while true do end",
	},
	"rust": {
		hello:    `fn main() { println!("hello") }`,
		greet:    `fn main() { let mut s = String::new(); std::io::stdin().read_line(&mut s).unwrap(); print!("hi {} {}", std::env::args().nth(1).unwrap(), s); std::process::exit(7) }`,
		greeting: "hi a b* there\n",
		fail:     "fn main() {\npanic!(\"boom\") }", failed: "/sandbox/main.rs:2:1", exit: 101, endless: "fn main() { loop { std::hint::spin_loop() } }",
	},
	"sql": {
		hello: "SELECT 'hello';", greet: "CREATE TABLE t (x);\n.import /dev/stdin t\nSELECT 'hi ' || x FROM t;\n.exit 7\n", greeting: "hi there\n",
		fail: "SELECT 1;\nSELECT * FROM boom;\nSELECT 2;", failed: "no such table: boom", exit: 1,
		endless: "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT count(*) FROM t;",
	},
	"csharp": {
		hello:    `class P { static void Main() { System.Console.WriteLine("hello"); } }`,
		greet:    `using System; class P { static int Main(string[] a) { Console.WriteLine("hi " + a[0] + " " + Console.ReadLine()); return 7; } }`,
		greeting: "hi a b* there\n",
		fail:     `class P { static void Main() { throw new System.Exception("boom"); } }`, failed: "System.Exception: boom", exit: 1,
		endless: "class P { static void Main() { while (true); } }",
	},
}

// TestDeclaredLanguages runs each language that a file declares, unless its declaration says that it is not tested.
func TestDeclaredLanguages(t *testing.T) {
	for _, l := range declared.Builtin() {
		p, ok := declaredPrograms[l.Name]
		if ok == l.Details.Untested {
			t.Errorf("%s: untested = %v, and this test has programs of it: %v, want either", l.Name, l.Details.Untested, ok)
		}
		if !ok {
			continue
		}
		t.Run(l.Name, func(t *testing.T) {
			sb := open(t, llmsandbox.Options{Language: l.Name})
			for _, names := range l.Programs {
				res, err := sb.Shell(testContext(t), "command -v "+strings.Join(names, " || command -v "), nil)
				if err != nil {
					t.Fatal(err)
				}
				require(t, res.OK(), names[0]+" is missing: "+l.Install)
			}
			res := run(t, sb, p.hello, nil)
			wantExit(t, res, 0)
			wantStdout(t, res, "hello\n")
			if res.Stderr != "" {
				t.Errorf("stderr %q of hello, want none", res.Stderr)
			}

			var args []string
			if strings.Contains(p.greeting, "a b*") {
				args = []string{"a b*"}
			} else if _, err := sb.Run(testContext(t), p.hello, &llmsandbox.RunOptions{Args: []string{"a"}}); err == nil || !strings.Contains(err.Error(), "take none") {
				t.Errorf("arguments: %v, want that they are refused", err)
			}
			res = run(t, sb, p.greet, &llmsandbox.RunOptions{Args: args, Stdin: strings.NewReader("there\n")})
			wantExit(t, res, 7)
			wantStdout(t, res, p.greeting)

			res = run(t, sb, p.fail, nil)
			wantExit(t, res, p.exit)
			if !strings.Contains(res.Stderr, p.failed) {
				t.Errorf("stderr %q of an error, want it to contain %q", res.Stderr, p.failed)
			}

			// The limit is no measure of the machine: the program never ends by itself.
			res = run(t, sb, p.endless, &llmsandbox.RunOptions{Timeout: 3 * time.Second})
			if res.Status != llmsandbox.StatusTimeout {
				t.Errorf("status %s of an endless program, want timeout: %s", res.Status, res.Stderr)
			}
			for _, e := range l.Details.Examples {
				wantExit(t, run(t, sb, e.Code, nil), 0)
			}
			left, err := sb.Shell(testContext(t), "ls -A /sandbox /tmp | grep run- || true", nil)
			if err != nil || left.Stdout != "" {
				t.Errorf("left behind: %q, %v, want nothing of the runs", left.Stdout, err)
			}
		})
	}
}

// TestDeclaredProjects: the other files of a project are found where its language looks for them.
func TestDeclaredProjects(t *testing.T) {
	for _, c := range []struct{ lang, main, name, other string }{
		{"perl", "use Other; print Other::x();", "Other.pm", "package Other; sub x { 42 } 1;"},
		{"php", "<?php include 'other.php'; echo X;", "other.php", "<?php const X = 42;"},
		{"lua", "io.write(require('other').x)", "other.lua", "return { x = 42 }"},
		{"rust", "mod other; fn main() { print!(\"{}\", other::X) }", "other.rs", "pub const X: i32 = 42;"},
		{"csharp", "class P { static void Main() { System.Console.Write(Q.X); } }", "other.cs", "class Q { public const int X = 42; }"},
	} {
		t.Run(c.lang, func(t *testing.T) {
			sb := open(t, llmsandbox.Options{Language: c.lang})
			res, err := sb.Run(testContext(t), c.main, &llmsandbox.RunOptions{Files: map[string][]byte{c.name: []byte(c.other)}})
			require(t, !errors.Is(err, llmsandbox.ErrToolchain), "the toolchain is missing")
			if err != nil {
				t.Fatal(err)
			}
			wantExit(t, res, 0)
			wantStdout(t, res, "42")
		})
	}
}
