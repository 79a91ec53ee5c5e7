package bash

import (
	_ "embed"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

//go:embed kernel/driver.sh
var driver []byte

//go:embed kernel/tools.sh
var tools []byte

var kernel = language.Kernel{Plan: planKernel, Interrupt: language.InterruptSignal, Base64: true}

func planKernel(src language.KernelSource) (language.Plan, error) {
	main := src.File("driver.sh", driver)
	bash := src.Program("bash")
	// An interactive shell that finds no terminal complains about that before it reads
	// anything. The driver takes its stderr back.
	start := `exec "$0" --noprofile --noediting --rcfile "$1" -i 5>&2 2>/dev/null`
	return language.Plan{
		Files: []language.File{main, src.File("tools.sh", tools)},
		Steps: []language.Step{{Argv: []string{bash, "-c", start, bash, main.Path}}},
	}, nil
}
