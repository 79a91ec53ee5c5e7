// Package python describes Python.
package python

import (
	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/language/source"
)

// Language is Python 3.
var Language = language.Language{
	Name: "python", Title: "Python", Aliases: []string{"py", "python3"},
	Extensions: []string{".py", ".pyw"}, Shebangs: []string{"python3", "python"},
	Programs: [][]string{{"python3", "python"}},
	Install:  "install it with: apt-get install python3; or use --image python:3",
	Plan:     plan, Libraries: &libraries, Kernel: &kernel, Capture: capture, Ahead: &language.Ahead{Capture: ahead, Forks: true, Driver: driverProgram, Settable: settable, Args: true, Module: isModule},
	Scan: scan, ModuleSeparator: ".", LibraryName: libraryName, Missing: &missing,
	Details: details, Env: environment,
}

// environment is for pip in a sandbox.
var environment = []string{
	// Debian's pip refuses to install beside the system's packages. Here it installs below HOME, since the system is read-only.
	"PIP_BREAK_SYSTEM_PACKAGES=1",
	// Without a network, or to a refused host, each retry only takes longer. One says why it fails.
	"PIP_RETRIES=1",
	"PIP_DISABLE_PIP_VERSION_CHECK=1",
}

func plan(src language.Source) (language.Plan, error) {
	code, err := source.Clean(src.Code)
	if err != nil {
		return language.Plan{}, err
	}
	l, err := language.Lay(src, source.Dedent(code), "main.py", ".py", ".pyw")
	if err != nil {
		return language.Plan{}, err
	}
	// -u: output is streamed as it is printed, not when a buffer is full.
	return l.Interpret(src, []string{src.Program("python3", "python"), "-u"}), nil
}
