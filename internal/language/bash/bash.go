// Package bash describes Bash.
package bash

import (
	_ "embed"

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

//go:embed kernel/driver.sh
var driver []byte

//go:embed kernel/tools.sh
var tools []byte

var kernel = language.Kernel{Plan: planKernel, Interrupt: language.InterruptSignal, Base64: true}

func planKernel(src language.KernelSource) (language.Plan, error) {
	main := src.File("driver.sh", driver)
	bash := src.Program("bash")
	// An interactive shell that finds no terminal complains about that before it reads
	// anything. The driver takes its stderr back.
	start := `exec "$0" --noprofile --noediting --rcfile "$1" -i 5>&2 2>/dev/null`
	return language.Plan{
		Files: []language.File{main, src.File("tools.sh", tools)},
		Steps: []language.Step{{Argv: []string{bash, "-c", start, bash, main.Path}}},
	}, nil
}

// missing has the packages of well-known commands.
var missing = language.Missing{
	Messages: [][2]string{{": ", ": command not found"}, {": ", ": not found"}},
	Libraries: map[string]string{
		"bc": "bc", "column": "bsdextrautils", "curl": "curl", "dig": "bind9-dnsutils", "file": "file", "git": "git", "jq": "jq", "convert": "imagemagick", "dot": "graphviz", "ffmpeg": "ffmpeg",
		"gnuplot": "gnuplot-nox", "pandoc": "pandoc", "rg": "ripgrep", "rsync": "rsync", "sqlite3": "sqlite3", "tree": "tree", "unzip": "unzip", "wget": "wget", "xmllint": "libxml2-utils",
		"xxd": "xxd", "yq": "yq", "zip": "zip",
	},
}
