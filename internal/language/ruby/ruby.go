// Package ruby describes Ruby.
package ruby

import "github.com/llmsandbox/llmsandbox/internal/language"

// Language is Ruby.
var Language = language.Language{
	Name: "ruby", Title: "Ruby", Aliases: []string{"rb"},
	Extensions: []string{".rb"}, Shebangs: []string{"ruby"},
	Programs:  [][]string{{"ruby"}},
	Install:   "install it with: apt-get install ruby; or use --image ruby:3",
	Libraries: &libraries,
	Kernel:    kernel,
	Details:   details,
	Ahead:     &language.Ahead{Capture: ahead, Settable: settable, Args: true},
	Scan:      scanCode, ModuleSeparator: "/", LibraryName: libraryName, Missing: &missing,
	Plan: func(src language.Source) (language.Plan, error) {
		return language.Script(src, []string{src.Program("ruby")}, "main.rb", ".rb")
	},
}
