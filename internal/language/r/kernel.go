package r

import (
	_ "embed"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

//go:embed kernel.R
var kernelDriver []byte

// kernel evaluates cells in the global environment. R opens descriptors by name only,
// which another user's pipes forbid: small processes carry bytes between them and R.
var kernel = &language.Kernel{
	Plan: func(src language.KernelSource) (language.Plan, error) {
		driver := src.File("kernel.R", kernelDriver)
		return language.Plan{
			Files: []language.File{driver},
			Steps: []language.Step{{
				Argv: []string{src.Program("Rscript"), "--no-environ", "--no-init-file", "--no-save", "--no-restore", driver.Path},
				Env:  []string{"R_PROFILE=/dev/null"}, // unless there is a capture
			}},
		}, nil
	},
	Interrupt: language.InterruptSignal,
	EndInput:  true,
	Base64:    true,
}
