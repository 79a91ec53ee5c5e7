// Package bash describes Bash.
package bash

import "github.com/llmsandbox/llmsandbox/language"

// Language is Bash.
var Language = language.Language{
	Name: "bash", Title: "Bash", Aliases: []string{"sh", "shell"},
	Extensions: []string{".sh", ".bash"}, Shebangs: []string{"bash", "sh"},
	Programs: [][]string{{"bash"}},
	Install:  "install it with: apt-get install bash; or use --image bash:5",
	Plan: func(src language.Source) (language.Plan, error) {
		return language.Script(src, []string{src.Program("bash")}, "main.sh", ".sh", ".bash")
	},
}
