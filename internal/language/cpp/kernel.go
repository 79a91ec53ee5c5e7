package cpp

import (
	_ "embed"
	"path"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

//go:embed kernel.h
var kernelDriver []byte

// kernel is clang-repl, whose first input is the driver: C++ that takes requests and
// feeds the interpreter its next lines.
var kernel = &language.Kernel{
	Plan: func(src language.KernelSource) (language.Plan, error) {
		lines := language.Quote(path.Join(src.Dir, "lines"))
		driver := src.File("kernel.h", kernelDriver)
		start := "for p in " + strings.Join(programs, " ") + "; do command -v $p >/dev/null && break; p=; done; " +
			"[ -n \"$p\" ] || { echo 'a kernel of C++ needs clang-repl: " + install + "' >&2; exit 127; }; " +
			"mkfifo " + lines + " && exec <>" + lines + " && printf '%s\\n' " + language.Quote(`#include "`+driver.Path+`"`) + " 'int llmsandbox_0 = llmsandbox::next();' >&0 && exec $p"
		return language.Plan{
			Files: []language.File{driver},
			Steps: []language.Step{{Argv: []string{"sh", "-c", start}, Env: []string{"LLMSANDBOX_KERNEL_DIR=" + src.Dir}}},
		}, nil
	},
	Interrupt: language.InterruptNone,
	Base64:    true,
	Install:   install,
}

const install = "install it with: apt-get install clang-tools-19 or a newer one, which has clang-repl"

// programs are what clang-repl is called. Versions before 17 fall over plain statements.
var programs = []string{"clang-repl", "clang-repl-22", "clang-repl-21", "clang-repl-20", "clang-repl-19", "clang-repl-18", "clang-repl-17"}
