package mcp

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/llmsandbox/llmsandbox"
)

func TestHints(t *testing.T) {
	all := []llmsandbox.Hint{
		{Kind: llmsandbox.HintLibrary, Subject: "six"}, {Kind: llmsandbox.HintFile, Subject: "helper.h"}, {Kind: llmsandbox.HintNetwork, Subject: "a.test:443"}, {Kind: llmsandbox.HintTimeout},
		{Kind: llmsandbox.HintMemory}, {Kind: llmsandbox.HintOutput}, {Kind: llmsandbox.HintDisk},
		{Kind: llmsandbox.HintIsolation, Subject: "/tmp"}, {Kind: llmsandbox.HintIsolation, Subject: "/dev/shm"}, {Kind: llmsandbox.HintIsolation},
	}
	c := Config{Sandbox: llmsandbox.Options{Limits: llmsandbox.Limits{Timeout: 2 * time.Minute}}}
	if diff := cmp.Diff([]string{
		"six is not installed: list it in libraries of execute_code, or install it in a session with install_libraries",
		"helper.h is not in the sandbox: write it into a session first, with write_file",
		"pass a longer timeout (the operator allows 2 minutes), or do less in one call",
		"use less memory at once: only the operator of this server can raise the limit",
		"write long output to a file and read a part of it",
		"remove files that are no longer needed: only the operator of this server can raise the limit of the disk",
		"/tmp is not the sandbox's own: use the working directory, or the directory in TMPDIR",
		"there is no /dev/shm here: do without it",
		"code may not listen on a port here",
		"the sandbox may not reach a.test:443: only the operator of this server can allow it",
	}, c.hints(all)); diff != "" {
		t.Errorf("differs (-want +got):\n%s", diff)
	}
	c.NoLibraries = true
	if diff := cmp.Diff([]string{
		"six is not installed, and only the operator of this server can change that",
		"the sandbox has no network: only the operator of this server can allow one",
	}, c.hints([]llmsandbox.Hint{all[0], {Kind: llmsandbox.HintNetwork}})); diff != "" {
		t.Errorf("without libraries: differs (-want +got):\n%s", diff)
	}
}
