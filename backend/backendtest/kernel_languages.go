package backendtest

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
)

// languageCells is the same session in one language. What is empty a language has not.
type languageCells struct {
	lang, define, use          string
	fail, failure, line, child string
	loop                       string // does not end by itself
	stubborn                   string // the first interrupt comes to nothing
	input, answered            string // asks for a line, and its value when that is "Ann"
	complete, completes        string
	variable                   llmsandbox.Variable // of define
	crash                      string
}

var sessions = []languageCells{
	{
		lang: "javascript", define: "const x = 21; function twice(a) { return a * 2 }\nimport os from 'node:os'", use: "console.log('out'); await twice(x)",
		fail: "\nthrow new RangeError('no')", failure: "RangeError", line: "cell[3]:2", child: "require('child_process').execSync('echo child', {stdio: 'inherit'})",
		loop: "for (;;) {}", input: "'hello ' + prompt('name? ')", answered: "'hello Ann'", complete: "twi", completes: "twice",
		variable: llmsandbox.Variable{Name: "x", Type: "number", Value: "21"}, crash: "process.kill(process.pid, 'SIGKILL'); for (;;) {}",
	},
	{
		lang: "typescript", define: "const x: number = 21; function twice(a: number): number { return a * 2 }\nimport os from 'node:os'\nundefined as void", use: "console.log('out'); await twice(x as number)",
		fail: "\nthrow new RangeError('no' as string)", failure: "RangeError", line: "cell[3]:2", child: "require('child_process').execSync('echo child', {stdio: 'inherit'})",
		loop: "for (;;) {}", input: "'hello ' + prompt('name? ')!", answered: "'hello Ann'", complete: "twi", completes: "twice",
		variable: llmsandbox.Variable{Name: "x", Type: "number", Value: "21"}, crash: "process.kill(process.pid, 'SIGKILL'); for (;;) {}",
	},
	{
		lang: "ruby", define: "require 'set'\nx = 21\ndef twice(a) = a * 2\nnil", use: "puts 'out'; twice(x)",
		fail: "\nraise ArgumentError, 'no'", failure: "ArgumentError", line: "cell[3]:2", child: "system('echo child')",
		loop: "loop {}", input: "'hello ' + gets.chomp", answered: `"hello Ann"`, complete: "twi", completes: "twice",
		variable: llmsandbox.Variable{Name: "x", Type: "Integer", Value: "21"}, crash: "Process.kill(:KILL, $$); sleep",
	},
	{
		lang: "r", define: "x <- 21L; twice <- function(a) a * 2L", use: "cat('out\\n'); twice(x)",
		fail: "\nstop('no')", failure: "simpleError", line: "cell[3]:2", child: "invisible(system('echo child'))",
		loop: "while (TRUE) {}", input: "paste('hello', readline('name? '))", answered: `[1] "hello Ann"`, complete: "twi", completes: "twice",
		variable: llmsandbox.Variable{Name: "x", Type: "integer", Value: "21"}, crash: "tools::pskill(Sys.getpid(), 9L); Sys.sleep(1000)",
	},
	{
		lang: "java", define: "import java.time.Duration;\nint x = 21; int twice(int a) { return a * 2; }", use: "System.out.println(\"out\"); twice(x)",
		fail: "\nthrow new IllegalStateException(\"no\");", failure: "java.lang.IllegalStateException", line: "cell[3]:2",
		child: "new ProcessBuilder(\"echo\", \"child\").inheritIO().start().waitFor();",
		loop:  "while (true) {}", input: `"hello " + new Scanner(System.in).nextLine()`, answered: `"hello Ann"`, complete: "twi", completes: "twice(",
		variable: llmsandbox.Variable{Name: "x", Type: "int", Value: "21"}, crash: "Runtime.getRuntime().halt(9);",
	},
	{
		lang: "go", define: "import (\"fmt\"; \"os\"; \"os/exec\"; \"os/signal\")\nx := 21\nfunc twice(a int) int { return a * 2 }", use: "fmt.Println(\"out\"); twice(x)",
		fail: "\npanic(\"no\")", failure: "panic", line: "cell[3]:2", child: "cmd := exec.Command(\"echo\", \"child\"); cmd.Stdout = os.Stdout; _ = cmd.Run(); cmd = nil",
		loop: "for {}", stubborn: "first := make(chan os.Signal, 1); signal.Notify(first, os.Interrupt); fmt.Println(\"on\"); <-first; signal.Reset(); for {}",
		complete: "twi", completes: "twice", variable: llmsandbox.Variable{Name: "x", Type: "int", Value: "21"},
	},
	{
		lang: "cpp", define: "#include <cstdio>\nint x = 21; int twice(int a) { return a * 2; }", use: "puts(\"out\"); twice(x)",
		fail: "\nint bad = \"no\";", failure: "CompileError", line: "cell[3]:2", child: "#include <cstdlib>\nsystem(\"echo child\");",
	},
}

func (s *suite) kernelsOfLanguages(t *testing.T) {
	options := make([]llmsandbox.Options, len(sessions))
	for i, c := range sessions {
		options[i].Language = c.lang
	}
	sandboxes := s.openings(t, options)
	for i, c := range sessions {
		t.Run(c.lang, func(t *testing.T) { c.inKernel(t, sandboxes.use(t, i)) })
	}
}

// inKernel is a session in a sandbox of the language.
func (c languageCells) inKernel(t *testing.T, sb *llmsandbox.Sandbox) {
	k, err := sb.Kernel(testContext(t), "", nil)
	if c.lang == "cpp" && err != nil {
		// Not every image has what it needs; then it says how to get it.
		if !strings.Contains(err.Error(), "apt-get install clang-tools") {
			t.Errorf("got %v, want an error containing \"apt-get install clang-tools\"", err)
		}
		return
	}
	if err != nil {
		t.Fatalf("open a kernel: %v", err)
	}
	defer k.Close()
	wantValue(t, k, c.define, "")
	wantNoKernelFiles(t, sb)
	use := func() {
		t.Helper()
		if got := cell(t, k, c.use, nil); !got.OK() || got.Stdout != "out\n" || got.Value["text/plain"] != "42" && got.Value["text/plain"] != "[1] 42" {
			t.Errorf("%+v %+v, want OK, Stdout = \"out\\n\", got.Value[\"text/plain\"] = \"42\" or got.Value[\"text/plain\"] = \"[1] 42\"", got, got.Error)
		}
	}
	use()
	if got := cell(t, k, c.fail, nil); got.Status != llmsandbox.StatusError || got.StateLost || got.Error == nil || got.Error.Name != c.failure || !strings.Contains(got.Error.Traceback, c.line) {
		t.Errorf("an error: %+v %+v, want Status = StatusError, StateLost false, Error not nil, Name = %v, Traceback containing %q", got, got.Error, c.failure, c.line)
	}
	use()
	if got := cell(t, k, c.child, nil); got.Stdout != "child\n" {
		t.Errorf("a child: %+v %+v, want Stdout = \"child\\n\"", got, got.Error)
	}
	c.asked(t, k)
	c.interrupted(t, k)
	if c.loop != "" {
		use()
	}
	c.crashes(t, k)
}

// asked is what a kernel is asked about, and what its cells ask.
func (c languageCells) asked(t *testing.T, k *llmsandbox.Kernel) {
	if c.complete != "" {
		if got, err := k.Complete(testContext(t), c.complete, len(c.complete)); err != nil || !slices.Contains(got.Matches, c.completes) {
			t.Errorf("complete: %+v, %v, want no error, Matches containing %v", got, err, c.completes)
		}
		if got, err := k.Variables(testContext(t)); err != nil || !slices.ContainsFunc(got, func(v llmsandbox.Variable) bool {
			return v.Name == c.variable.Name && v.Type == c.variable.Type && strings.Contains(v.Value, c.variable.Value)
		}) {
			t.Errorf("variables: %+v, %v", got, err)
		}
	}
	if c.input == "" {
		return
	}
	ann := &llmsandbox.CellOptions{Stdin: func(context.Context, string, bool) (string, error) { return "Ann", nil }}
	if got := cell(t, k, c.input, ann); got.Value["text/plain"] != c.answered {
		t.Errorf("input: %+v %+v, want got.Value[\"text/plain\"] = %v", got, got.Error, c.answered)
	}
	// A question without an answer is ended by an interrupt, and the next one is asked.
	silent := &llmsandbox.CellOptions{Stdin: func(ctx context.Context, _ string, _ bool) (string, error) {
		if err := k.Interrupt(ctx); err != nil {
			t.Errorf("interrupt a question: %v", err)
		}
		<-ctx.Done()
		return "", ctx.Err()
	}}
	if got := cell(t, k, c.input, silent); got.Status != llmsandbox.StatusKilled || !got.Interrupted || got.StateLost {
		t.Errorf("an interrupted question: %+v %+v, want Status = StatusKilled, Interrupted true, StateLost false", got, got.Error)
	}
	if got := cell(t, k, c.input, ann); got.Value["text/plain"] != c.answered {
		t.Errorf("input after an interrupt: %+v %+v, want got.Value[\"text/plain\"] = %v", got, got.Error, c.answered)
	}
}

func (c languageCells) interrupted(t *testing.T, k *llmsandbox.Kernel) {
	if c.loop != "" {
		timeout := time.Second
		if c.lang == "go" {
			timeout = 3 * time.Second // time enough to compile
		}
		got := cell(t, k, c.loop, &llmsandbox.CellOptions{Timeout: timeout})
		if got.Status != llmsandbox.StatusTimeout || !got.Interrupted || got.StateLost {
			t.Errorf("an endless loop: %+v %+v, want Status = StatusTimeout, Interrupted true, StateLost false", got, got.Error)
		}
	}
	if c.stubborn != "" {
		interrupt := writerFunc(func() {
			if err := k.Interrupt(context.Background()); err != nil {
				t.Errorf("interrupt: %v", err)
			}
		})
		got := cell(t, k, c.stubborn, &llmsandbox.CellOptions{Stdout: interrupt})
		if got.Status != llmsandbox.StatusKilled || !got.Interrupted || got.StateLost {
			t.Errorf("an interrupt that came to nothing: %+v %+v, want Status = StatusKilled, Interrupted true, StateLost false", got, got.Error)
		}
	}
}

// crashes ends the kernel's process: that is reported, and the next cell has a new one.
func (c languageCells) crashes(t *testing.T, k *llmsandbox.Kernel) {
	if c.crash == "" {
		return
	}
	if got := cell(t, k, c.crash, nil); got.OK() || !got.StateLost || got.Signal != "SIGKILL" && got.ExitCode != 9 {
		t.Errorf("a crash: %+v %+v, want got.OK() = false, StateLost true, Signal = \"SIGKILL\" or ExitCode = 9", got, got.Error)
	}
	if got := cell(t, k, c.use, nil); got.Status != llmsandbox.StatusError || got.Count != 1 || got.Restarted {
		t.Errorf("after a crash: %+v %+v, want Status = StatusError, Count = 1, Restarted false", got, got.Error)
	}
	wantValue(t, k, c.define, "")
}
