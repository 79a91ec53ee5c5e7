package backendtest

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
)

// An aheadProgram is one that does the same in an interpreter that was started ahead.
type aheadProgram struct {
	code string
	want string // is in its output
}

// aheadPrograms are those of the languages but Python, which interpreterAhead has.
var aheadPrograms = map[string][]aheadProgram{
	"javascript": {
		{"const fs = require('fs'); console.log(require.main === module, __filename === process.argv[1], Object.keys(process.env).sort(), process.execArgv, " +
			"process.cwd(), Object.keys(require.cache).length, fs.readdirSync('/proc/self/fd').length, fs.readFileSync(0).length, Object.keys(globalThis))", "true true"},
		{"console.log(require('fs').readFileSync(__filename, 'utf8').length)", "66"},
		{"function f() {\n  throw new Error('é #{x}')\n}\nf()", "main.js:2"},
		{"import fs from 'node:fs'\nconsole.log(import.meta.url.endsWith('.mjs'), typeof fs.readFileSync)", "true function"},
		{"#!/usr/bin/env node\nconsole.log(require('child_process').execFileSync(process.execPath, ['-p', 'process.env.NODE_OPTIONS']).toString())", "undefined"},
		{"setTimeout(() => process.exit(7), 1); Promise.resolve().then(() => console.log('then'))", "then"},
		{"console.log(", "SyntaxError"},
	},
	"java": {
		{"public class Éa {\n  public static void main(String[] a) {\n    System.out.println(\"é\" + Éa.class.getProtectionDomain().getCodeSource().getLocation().getPath().startsWith(\"/tmp/.run-\") " +
			"+ System.getenv().keySet().stream().sorted().toList() + System.getProperty(\"user.dir\") + new java.io.File(\"/proc/self/fd\").list().length);\n  }\n}\n", "étrue"},
		{"class A {}\npublic class B {\n  public static void main(String[] a) {\n    int x = \"é\";\n  }\n}\n", "B.java:4: error: incompatible types"},
		{"import java.util.*;\npublic class Main {\n  public static void main(String[] a) throws Exception {\n    List l = new ArrayList(); l.add(1);\n" +
			"    System.out.println(new String(System.in.readAllBytes()) + l);\n    throw new Exception(\"x\");\n  }\n}\n", "Main.java uses unchecked"},
		{"record P(int x) {}\nvoid", "error:"},
		{"public class Main { public static void main(String[] a) { System.exit(7); } }", ""},
	},
	"ruby": {
		{"p __FILE__ == $0, ENV.keys.sort, Dir.pwd, self, $LOADED_FEATURES.grep_v(/ahead/).size, local_variables, STDIN.read, Dir.children('/proc/self/fd').size", "true"},
		{"# frozen_string_literal: true\np 'a'.frozen?, \"#{1 + 1}\", '#{1}'", "true\n\"2\""},
		{"=begin\n=end\np DATA.read, __LINE__\n__END__\nthe data\n", "\"the data\\n\"\n3"},
		{"#!/usr/bin/env ruby -W2\np $VERBOSE", "true"},
		{"def f\n  raise ArgumentError, 'é'\nend\nf", "main.rb:2:in"},
		{"puts 'x'; system('echo \"$RUBYOPT.\"'); exit 7", ".\n"},
		{"at_exit { puts 'at exit' }; Thread.new { print 'thread ' }.join; fork { puts 'child' }; Process.wait", "at exit"},
		{"def (", "main.rb:1"},
	},
	"r": {
		{"print(search()); print(loadedNamespaces()); print(commandArgs(TRUE)); print(names(Sys.getenv())); print(getwd()); print(readLines('stdin'))", "package:stats"},
		{"print(ls(all.names = TRUE)); print(names(options())); print(exists('.Random.seed')); print(length(sys.frames()))", "FALSE"},
		{"f <- function() stop('é #{x}')\nf()", "#{x}"},
		{"x <- \"\\\\ \\\" \\t\"; cat(x, '\\n'); quit(status = 7)", "\\ \" \t"},
		{"print(system('echo \"$R_PROFILE.\" | wc -l', intern = TRUE)); print(summary(lm(dist ~ speed, cars))$r.squared)", "0.65"},
		{"print(parallel::mcparallel(1)$pid > 0); print(1:3", "unexpected end"},
	},
}

// aheadArgs print an argument, and whether the command line has it, which shows the interpreter
// that was started before.
var aheadArgs = map[string]string{
	"javascript": "console.log(process.argv.slice(2), process.env.A, process.cwd(), require('fs').readFileSync('/proc/self/cmdline').includes('é'))",
	"ruby":       "p ARGV, ENV['A'], Dir.pwd, File.binread('/proc/self/cmdline').include?('é'.b)",
}

// aheadOfLanguages has interpreters of other languages than Python start before their code.
func (s *suite) aheadOfLanguages(t *testing.T) {
	languages := slices.Sorted(maps.Keys(aheadPrograms))
	sandboxes := s.openings(t, ofLanguages(languages))
	for i, lang := range languages {
		t.Run(lang, func(t *testing.T) {
			sb := sandboxes.use(t, i, hellos[lang].program)
			bare := s.open(t, llmsandbox.Options{Language: lang})
			ctx := testContext(t)
			same := func(code string, o *llmsandbox.RunOptions) *llmsandbox.Result {
				t.Helper()
				if err := sb.Prepare(ctx); err != nil {
					t.Fatalf("prepare: %v", err)
				}
				return sameAhead(t, bare, sb, code, o)
			}
			for _, p := range aheadPrograms[lang] {
				res := same(p.code, nil)
				if !strings.Contains(res.Stdout+res.Stderr, p.want) {
					t.Errorf("%s, want output with %q", describe(res), p.want)
				}
			}
			if err := sb.Prepare(ctx); err != nil {
				t.Fatal(err)
			}
			switch code := aheadArgs[lang]; {
			case lang == "java": // its compiler has left its source there
				res := same(compiledAhead, &llmsandbox.RunOptions{Args: []string{"é<\"\n#{1}"}, Env: map[string]string{"A": "b#{2}"}})
				wantStdout(t, res, "é<\"\n#{1}b#{2}false")
				if err := sb.Prepare(ctx); err != nil {
					t.Fatal(err)
				}
				wantStdout(t, run(t, sb, compiledAhead, &llmsandbox.RunOptions{Args: []string{"ahead "}, Stdin: strings.NewReader("in")}), "ahead intrue")
				wantStdout(t, run(t, sb, compiledAhead, &llmsandbox.RunOptions{Args: []string{"ahead "}, Stdin: strings.NewReader("in")}), "ahead infalse")
			case code != "":
				o := &llmsandbox.RunOptions{Args: []string{"é<\"\n#{1}"}, Env: map[string]string{"A": "b#{2}"}, Dir: "artifacts"}
				res := run(t, sb, code, o)
				if !strings.Contains(res.Stdout, "false") || !strings.Contains(res.Stdout, "{2}") || !strings.Contains(res.Stdout, "/artifacts") {
					t.Errorf("%s, want the variable, the directory, and no argument in the command line", describe(res))
				}
				without := run(t, sb, code, o)
				if want := strings.Replace(without.Stdout, "true", "false", 1); res.Stdout != want {
					t.Errorf("%s, want Stdout = %q", describe(res), want)
				}
			default: // it has its descriptors
				wantStdout(t, run(t, sb, "cat(file.exists('/proc/self/fd/3'), getwd() == '"+sb.Workdir()+"')", nil), "TRUE TRUE")
				same("print(commandArgs(TRUE))", &llmsandbox.RunOptions{Args: []string{"a"}})
				same("print(Sys.getenv('A'))", &llmsandbox.RunOptions{Env: map[string]string{"A": "b"}})
			}
			if err := sb.Prepare(ctx); err != nil {
				t.Fatal(err)
			}
			wantStatus(t, run(t, sb, aheadForever[lang], &llmsandbox.RunOptions{Timeout: time.Second}), llmsandbox.StatusTimeout)
		})
	}
}

// compiledAhead prints what it is given, and whether its compiler was started before, if its argument is to say so.
const compiledAhead = `import java.io.File;

public class Main {
    public static void main(String[] args) throws Exception {
        boolean found = false;
        for (File dir : new File(System.getProperty("java.io.tmpdir")).listFiles()) {
            found |= args[0].startsWith("ahead") && new File(dir, "support/Ahead.java").exists();
        }
        System.out.print(args[0] + System.getenv().getOrDefault("A", "") + new String(System.in.readAllBytes()) + found);
    }
}
`

var aheadForever = map[string]string{
	"java":       "class Main { public static void main(String[] a) { for (;;); } }",
	"javascript": "for (;;) {}",
	"ruby":       "loop {}",
	"r":          "repeat {}",
}
