package bash

import "github.com/llmsandbox/llmsandbox/internal/language"

// missing has the packages of well-known commands.
var missing = language.Missing{
	Messages: [][2]string{{": ", ": command not found"}, {": ", ": not found"}},
	Libraries: map[string]string{
		"bc": "bc", "column": "bsdextrautils", "curl": "curl", "dig": "bind9-dnsutils", "file": "file", "git": "git", "jq": "jq", "convert": "imagemagick", "dot": "graphviz", "ffmpeg": "ffmpeg",
		"gnuplot": "gnuplot-nox", "pandoc": "pandoc", "rg": "ripgrep", "rsync": "rsync", "sqlite3": "sqlite3", "tree": "tree", "unzip": "unzip", "wget": "wget", "xmllint": "libxml2-utils",
		"xxd": "xxd", "yq": "yq", "zip": "zip",
	},
}
