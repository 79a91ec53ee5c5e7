// Package r describes R.
package r

import (
	_ "embed"
	"path"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

// Language is R.
var Language = language.Language{
	Name: "r", Title: "R", Aliases: []string{"rscript"},
	Extensions: []string{".R", ".r"}, Shebangs: []string{"Rscript"},
	Programs:  [][]string{{"Rscript"}},
	Install:   "install it with: apt-get install r-base-core; or use --image r-base",
	Kernel:    kernel,
	Libraries: &libraries,
	Scan:      scan, ModuleSeparator: "::", LibraryName: libraryName, Missing: &missing,
	Details: details,
	Plan: func(src language.Source) (language.Plan, error) {
		plan, err := language.Script(src, argv(src), "main.R", ".R", ".r")
		for i := range plan.Steps {
			plan.Steps[i].Env = []string{"R_PROFILE=/dev/null"} // unless there is a capture
		}
		return plan, err
	},
	Capture: capture,
	Ahead:   &language.Ahead{Capture: ahead},
}

// argv is Rscript without anybody's habits: it is --vanilla but for the site's profile,
// which is ours.
func argv(src language.Source) []string {
	return []string{src.Program("Rscript"), "--no-environ", "--no-init-file", "--no-save", "--no-restore"}
}

var details = language.Details{
	UseCases:       []string{"statistics", "plots", "data frames", "models"},
	PackageManager: "install.packages",
	Version:        []string{"Rscript", "--version"},
	Known: []string{
		"ggplot2", "dplyr", "tidyr", "readr", "purrr", "stringr", "data.table", "lubridate", "plotly", "gridExtra", "caret", "randomForest", "glmnet", "jsonlite", "zoo", "xts",
	},
	Present: func(names []string) []string {
		const find = "for (n in commandArgs(TRUE)) if (nzchar(system.file(package = n))) cat(n, sep = '\\n')"
		return append([]string{"Rscript", "-e", find}, names...)
	},
	Examples: []language.Example{
		{Title: "Hello", Description: "Prints a line.", Code: "cat(\"Hello from R!\\n\")\n"},
		{
			Title: "A linear model", Description: "On a data set that R brings along.",
			Code: `fit <- lm(mpg ~ wt, data = mtcars)
print(round(coef(fit), 2))
`,
		},
		{
			Title: "A plot", Description: "Every plot comes back as a picture.",
			Code: `hist(mtcars$mpg, main = "Miles per gallon", xlab = "mpg")
`,
		},
	},
}

// The profile that R reads before the program, and what that loads when the program first
// plots.
var (
	//go:embed capture/profile.R
	profile string
	//go:embed capture/capture.R
	library []byte
	//go:embed capture/ahead.R
	waiting string
)

// capture has R read our profile in the site's place.
func capture(src language.CaptureSource) language.Capture { return captureBy(profile, src) }

// ahead also has R wait for its code.
func ahead(src language.CaptureSource) language.Capture {
	c := captureBy(profile+waiting, src)
	c.Files = append(c.Files, language.File{Path: path.Join(src.Support, "ahead"), Mode: 0o644})
	return c
}

func captureBy(text string, src language.CaptureSource) language.Capture {
	text = strings.NewReplacer(
		"@support@", quoted(src.Support), "@directory@", quoted(src.Dir), "@before@", quoted(src.Current("R_PROFILE")),
	).Replace(text)
	file := path.Join(src.Support, "profile.R")
	return language.Capture{
		Files: []language.File{
			{Path: file, Data: []byte(text), Mode: 0o644},
			{Path: path.Join(src.Support, "capture.R"), Data: library, Mode: 0o644},
		},
		Env: []string{"R_PROFILE=" + file},
	}
}

// quoted makes a text fit for a string of R in double quotes.
func quoted(s string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s)
}

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

var missing = language.Missing{
	Messages: [][2]string{{"there is no package called ‘", "’"}, {"there is no package called '", "'"}},
	Library:  func(module string) string { return module },
}
