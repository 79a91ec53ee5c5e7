package python

import (
	_ "embed"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

//go:embed kernel/driver.py
var driver []byte

//go:embed kernel/tools.py
var tools []byte

//go:embed kernel/shell.py
var shell []byte

var kernel = language.Kernel{Plan: planKernel, Interrupt: language.InterruptSignal}

func planKernel(src language.KernelSource) (language.Plan, error) {
	main := src.File("driver.py", driver)
	argv := []string{src.Program("python3", "python"), "-u", main.Path}
	if src.Plain {
		argv = append(argv, "plain")
	}
	return language.Plan{
		Files: []language.File{main, src.File("tools.py", tools), src.File("shell.py", shell)},
		Steps: []language.Step{{Argv: argv}},
	}, nil
}
