//go:build unix

package r

import (
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/kerneltest"
)

func TestKernel(t *testing.T) {
	kerneltest.Need(t, &Language)
	kerneltest.Suite(t, &Language, kerneltest.Cells{
		State:     []string{"library(stats)\nx <- 21; y <- 2\nf <- function(a) a * y\nsetClass('Box', representation(v = 'numeric')) -> Box", "cat('Result:', f(x), '\\n', sep = ' '); Box(v = f(x))@v"},
		Out:       "Result: 42 \n",
		Value:     "[1] 42",
		Fails:     "a <- 1\n\nstop('no ', a)",
		Failure:   [3]string{"simpleError", "no 1", "cell[1]:3: "},
		Syntax:    "b <- 1\nb <- <- 2",
		SyntaxAt:  "cell[1]:2:6",
		Sleep:     "cat('go\\n'); Sys.sleep(1e6)",
		Loop:      "cat('go\\n'); while (TRUE) {}",
		Stderr:    "message('careful')",
		Child:     "invisible(system('echo child; echo fault >&2; ls /proc/self/fd'))",
		Leaks:     true,
		Input:     "name <- readline('name? '); paste('hello', name)",
		Prompt:    "name? ",
		InputIs:   "[1] \"hello Ann\"",
		Exit:      ".Last <- function() cat('bye\\n'); quit(status = 3)",
		Crash:     "tools::pskill(Sys.getpid(), 9); while (TRUE) {}",
		Define:    "long_name <- list(alpha = 1)",
		Complete:  "long_n",
		Completes: "long_name",
		Member:    "long_name$al",
		MemberIs:  "long_name$alpha",
		Inspect:   "long_name",
		Inspects:  "List of 1",
		Variable:  [2]string{"long_name", "list"},
	})
}

func TestKernelCells(t *testing.T) {
	kerneltest.Need(t, &Language)
	k := kerneltest.Start(t, &Language)
	if stderr := k.Show([][3]string{
		{"1; invisible(2); 3", "[1] 3", "[1] 1\n"},
		{"v <- 4", "", ""},
		{"NULL", "NULL", ""},
		{"'café \"q\" \\\\ \\001'", `[1] "café \"q\" \\ \001"`, ""},
		{"# only words", "", ""},
		{"for (i in 1:2) print(i)", "", "[1] 1\n[1] 2\n"},
		{"cat(strrep('y', 300000))", "", strings.Repeat("y", 300000)},
		{"f <- function() {\n  warning('careful')\n  5\n}", "", ""},
		{"class(tryCatch(stop('x'), error = function(e) e))[1]", `[1] "simpleError"`, ""},
	}); stderr != "" {
		t.Errorf("they wrote %.300q to stderr, want empty", stderr)
	}
	if e := k.MustRun("sink(tempfile()); print('lost')"); e.Stdout != "" {
		t.Errorf("%q, want empty", e.Stdout)
	}
	if e := k.MustRun("f()"); e.Value["text/plain"] != "[1] 5" || !strings.Contains(e.Stderr, "careful") {
		t.Errorf("%q, %q, want e.Value[\"text/plain\"] = \"[1] 5\", Stderr containing \"careful\"", e.Value, e.Stderr)
	}
	if e := k.Run("g <- function(n) {\n  if (n == 0) stop('deep')\n  g(n - 1)\n}\n\ng(1)"); e.Failure == nil || !strings.Contains(e.Failure.Traceback, "cell[12]:6: ") ||
		!strings.Contains(e.Failure.Traceback, "cell[12]:3: g(n - 1)") || strings.Contains(e.Failure.Traceback, "tryCatch") {
		t.Errorf("%+v, want Failure not nil, Traceback containing \"cell[12]:6: \", Traceback containing \"cell[12]:3: g(n - 1)\", Traceback without \"tryCatch\"", e.Failure)
	}
	if e := k.MustRun("data.frame(a = 1:2, b = c('<x>', 'y'))"); !strings.Contains(e.Value["text/html"], "<td>&lt;x&gt;</td>") || !strings.Contains(e.Value["text/plain"], "1 1 <x>") {
		t.Errorf("%q, want it to contain \"<td>&lt;x&gt;</td>\", it to contain \"1 1 <x>\"", e.Value)
	}
	k.Input = []string{"one", "two"}
	if e := k.MustRun("readLines('stdin')"); e.Value["text/plain"] != `[1] "one" "two"` {
		t.Errorf("%+v, want e.Value[\"text/plain\"] = \"[1] \\\"one\\\" \\\"two\\\"\"", e.Value)
	}
	t.Logf("round trip %v", kerneltest.RoundTrip(k, "1+1", 100))
}
