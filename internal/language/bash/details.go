package bash

import "github.com/llmsandbox/llmsandbox/internal/language"

var details = language.Details{
	UseCases:       []string{"files and folders", "pipes of the usual tools", "glue between programs"},
	PackageManager: "apt",
	Version:        []string{"bash", "--version"},
	Known:          []string{"awk", "sed", "jq", "curl", "git", "sqlite3", "tar", "unzip", "bc", "xxd", "make", "perl"},
	Present: func(names []string) []string {
		const find = "for n; do if command -v \"$n\" >/dev/null; then echo \"$n\"; fi; done"
		return append([]string{"bash", "-c", find, "bash"}, names...)
	},
	Examples: []language.Example{
		{Title: "Hello", Description: "Prints a line.", Code: "echo \"Hello from Bash!\"\n"},
		{
			Title: "A pipe", Description: "Counts lines by their first word.",
			Code: `printf '%s\n' "ok one" "error two" "ok three" | cut -d' ' -f1 | sort | uniq -c | sort -rn
`,
		},
	},
}
