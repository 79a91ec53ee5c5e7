package ruby

import (
	_ "embed"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

//go:embed kernel.rb
var kernelDriver []byte

// kernel evaluates cells in one binding. It loads none of Ruby's libraries, so that
// requests come in base64 and a cell must require what it uses.
var kernel = &language.Kernel{
	Plan: func(src language.KernelSource) (language.Plan, error) {
		driver := src.File("kernel.rb", kernelDriver)
		return language.Plan{
			Files: []language.File{driver},
			Steps: []language.Step{{Argv: []string{src.Program("ruby"), driver.Path}}},
		}, nil
	},
	Interrupt: language.InterruptSignal,
	Base64:    true,
}
