package mcp

import (
	"fmt"
	"strings"

	"github.com/llmsandbox/llmsandbox"
)

// hints says in the words of this server's tools what may help, and what only its operator can change.
func (c Config) hints(found []llmsandbox.Hint) []string {
	var list, hosts []string
	offline := false
	for _, h := range found {
		switch h.Kind {
		case llmsandbox.HintLibrary:
			if c.NoLibraries {
				list = append(list, h.Subject+" is not installed, and only the operator of this server can change that")
				continue
			}
			list = append(list, fmt.Sprintf("%s is not installed: list it in libraries of execute_code, or install it in a session with install_libraries", h.Subject))
		case llmsandbox.HintFile:
			list = append(list, h.Subject+" is not in the sandbox: write it into a session first, with write_file")
		case llmsandbox.HintNetwork:
			offline = true
			if h.Subject != "" {
				hosts = append(hosts, h.Subject)
			}
		case llmsandbox.HintTimeout:
			list = append(list, fmt.Sprintf("pass a longer timeout (the operator allows %s), or do less in one call", span(c.Sandbox.Limits.Timeout)))
		case llmsandbox.HintMemory:
			list = append(list, "use less memory at once: only the operator of this server can raise the limit")
		case llmsandbox.HintOutput:
			list = append(list, "write long output to a file and read a part of it")
		case llmsandbox.HintDisk:
			list = append(list, "remove files that are no longer needed: only the operator of this server can raise the limit of the disk")
		}
	}
	switch {
	case len(hosts) > 0:
		list = append(list, "the sandbox may not reach "+strings.Join(hosts, ", ")+": only the operator of this server can allow it")
	case offline:
		list = append(list, "the sandbox has no network: only the operator of this server can allow one")
	}
	return list
}
