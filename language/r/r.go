// Package r describes R.
package r

import "github.com/llmsandbox/llmsandbox/language"

// Language is R.
var Language = language.Language{
	Name: "r", Title: "R", Aliases: []string{"rscript"},
	Extensions: []string{".R", ".r"}, Shebangs: []string{"Rscript"},
	Programs: [][]string{{"Rscript"}},
	Install:  "install it with: apt-get install r-base-core; or use --image r-base",
	Plan: func(src language.Source) (language.Plan, error) {
		return language.Script(src, []string{src.Program("Rscript"), "--vanilla"}, "main.R", ".R", ".r")
	},
}
