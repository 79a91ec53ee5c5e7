// Package abuse holds programs that attack a sandbox and what must become of
// them. The numbers are those of the project's abuse catalogue.
//
// The programs know nothing of the sandbox under test: a test runs each Case's
// source there, in whatever way, and hands what it saw to Case.Check.
package abuse

import (
	"cmp"
	"embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Canary is a text that a test plants wherever sandboxed code must not look: in
// its own environment, in the owner's home, in other sandboxes. No program holds
// it literally, and Check fails when it appears in any output.
const Canary = "llmsandbox-canary-5d1f0c9b"

// A Case is one program.
type Case struct {
	// Number is the catalogue's; several programs may share one.
	Number int
	// Name is unique, of [a-z0-9_].
	Name string
	// Language is "c", "cpp", "python" or "bash".
	Language string
	// Source is the whole program. C is for gcc, without options.
	Source string
	// Limits are what the program needs to run into.
	Limits Limits
	// Want is what must become of it.
	Want Want
}

// Limits of a run and its sandbox. Zero means the default.
type Limits struct {
	Timeout time.Duration
	Memory  int64 // bytes
	PIDs    int64
	Disk    int64 // bytes
	Output  int64 // bytes
}

// Want is what must become of a program.
type Want struct {
	// Status is the status's name.
	Status string
	// Or are other ends, where which one it is depends on the machine or on chance.
	Or []End
	// Within is how long the run may take at most; 0 means as long as it likes.
	Within time.Duration
	// Denied tells that the program prints one report line for each try, none
	// of which may have succeeded, and a last one at its end.
	Denied bool
	// Results are the results that count as denied; none means EPERM, EACCES
	// and ENOSYS.
	Results []string
	// Output are regular expressions that stdout must match at the usual end.
	Output []string
	// Never are regular expressions that neither stdout nor stderr may match.
	Never []string
	// Gone is a text that no process left in the sandbox may have in its
	// command line.
	Gone string
}

// An End is another end than a program's usual one.
type End struct {
	Status string
	// Says is a regular expression that the output or the result's error must match, so that
	// it is this end and no failure of ours; empty where the status alone says it.
	Says string
	// Why it may end so.
	Why string
}

//go:embed kernel files resources secrets
var sources embed.FS

// Cases returns all programs in the order of their numbers. It panics when one
// that the list names is not embedded, which a test of this package rules out.
func Cases() []Case {
	var out []Case
	for _, list := range [][]Case{kernelCases, fileCases, resourceCases, secretCases} {
		for _, c := range list {
			c.Source = source(c)
			out = append(out, c)
		}
	}
	slices.SortStableFunc(out, func(a, b Case) int { return cmp.Compare(a.Number, b.Number) })
	return out
}

var endings = map[string]string{"c": ".c", "cpp": ".cpp", "python": ".py", "bash": ".sh"}

// source puts the language's reporting functions before a program.
func source(c Case) string {
	dir := "resources"
	switch {
	case c.Number >= 70:
		dir = "secrets"
	case c.Number >= 42:
		dir = "kernel"
	case c.Number >= 27:
		dir = "files"
	}
	text := read(fmt.Sprintf("%s/%02d_%s%s", dir, c.Number, c.Name, endings[c.Language]))
	switch c.Language {
	case "c":
		text = "#define CASE " + strconv.Itoa(c.Number) + "\n" + read("kernel/report.h") + text
	case "python":
		text = strings.ReplaceAll(read("files/report.py"), "CASE", strconv.Itoa(c.Number)) + text
	}
	return text
}

func read(name string) string {
	b, err := sources.ReadFile(name)
	if err != nil {
		panic(err)
	}
	return string(b)
}
