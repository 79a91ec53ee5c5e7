// Package bash describes Bash.
package bash

import (
	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/language/debian"
)

// Language is Bash.
var Language = language.Language{
	Name: "bash", Title: "Bash", Aliases: []string{"sh", "shell"},
	Extensions: []string{".sh", ".bash"}, Shebangs: []string{"bash", "sh"},
	Programs:  [][]string{{"bash"}},
	Install:   "install it with: apt-get install bash; or use --image bash:5",
	Libraries: &debian.Libraries,
	Details:   details,
	Plan: func(src language.Source) (language.Plan, error) {
		return language.Script(src, []string{src.Program("bash")}, "main.sh", ".sh", ".bash")
	},
	Kernel: &kernel,
	Scan:   scan, ModuleSeparator: "/", LibraryName: debian.LibraryName, Missing: &missing,
}
