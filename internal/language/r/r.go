// Package r describes R.
package r

import "github.com/llmsandbox/llmsandbox/internal/language"

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
