package javascript

import (
	_ "embed"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

//go:embed kernel.cjs
var kernelDriver []byte

// kernel runs cells as V8 evaluates a console's lines, which keeps const and let, lets
// them be declared again, and awaits at the top level.
var kernel = &language.Kernel{
	Plan: func(src language.KernelSource) (language.Plan, error) {
		driver := src.File("kernel.cjs", kernelDriver)
		return language.Plan{
			Files: []language.File{driver},
			Steps: []language.Step{{Argv: append(node(src.Program, src.MemoryLimit), driver.Path)}},
		}, nil
	},
	Interrupt: language.InterruptBoth,
	Repeat:    true,
	EndInput:  true,
}
