package cli

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/termsafe"
	"github.com/llmsandbox/llmsandbox/security"
)

// codeLines are the lines of files by their names, as findings have them.
type codeLines map[string][][]byte

// linesOf are the lines of all files of programs.
func linesOf(programs ...security.Program) codeLines {
	lines := codeLines{}
	for _, p := range programs {
		lines[p.Name] = bytes.Split(p.Code, []byte("\n"))
		for name, data := range p.Files {
			lines[name] = bytes.Split(data, []byte("\n"))
		}
	}
	return lines
}

// A findingPrinter tells findings as a compiler tells errors.
type findingPrinter struct {
	w      io.Writer
	to     io.Writer // what w ends in, for its colours
	prefix string    // of each finding's first line
	lines  codeLines // to show; of what is not there nothing is shown
}

func (p findingPrinter) print(f security.Finding) {
	fmt.Fprintf(p.w, "%s%s: %s: %s [%s]\n", p.prefix, findingPlace(f),
		paint(p.to, severityColour(f.Severity), f.Severity.String()), termsafe.String(f.Reason), termsafe.String(f.Rule))
	if l := p.lines[f.File]; f.Line > 0 && f.Line <= len(l) {
		printLine(p.w, f, l[f.Line-1])
	}
}

func findingPlace(f security.Finding) string {
	switch {
	case f.Line == 0:
		return "--lib " + termsafe.String(f.Code)
	case f.File == "":
		return fmt.Sprintf("line %d:%d", f.Line, f.Column)
	}
	return fmt.Sprintf("%s:%d:%d", termsafe.String(f.File), f.Line, f.Column)
}

func severityColour(s security.Severity) colour {
	if s == security.High {
		return red
	}
	return yellow
}

// maxFindings bounds how many findings are printed beside a program's own output; --json has
// all.
const maxFindings = 20

// tellFindings says what a policy names in code that is run.
func tellFindings(to io.Writer, findings []security.Finding, lines codeLines) {
	p := findingPrinter{w: to, to: to, prefix: "llmsandbox: policy: ", lines: lines}
	for i, f := range findings {
		if i == maxFindings {
			fmt.Fprintf(to, "%sand %d more\n", p.prefix, len(findings)-i)
			return
		}
		p.print(f)
	}
}

// maxShown is how long a line of code may be to be shown.
const maxShown = 160

// printLine shows the line of a finding and marks the place in it.
func printLine(w io.Writer, f security.Finding, line []byte) {
	text := []rune(strings.TrimPrefix(strings.TrimRight(string(line), "\r"), "\ufeff"))
	if len(text) == 0 || len(text) > maxShown {
		return
	}
	shown := termsafe.String(string(text))
	fmt.Fprintf(w, "    %s\n", shown)
	if shown != string(text) || f.Column > len(text) {
		return // the columns are other ones
	}
	end := len(text) + 1
	if f.EndLine == f.Line {
		end = min(end, f.EndColumn)
	}
	var mark strings.Builder
	for i := range text[:f.Column-1] {
		if text[i] == '\t' {
			mark.WriteByte('\t')
		} else {
			mark.WriteByte(' ')
		}
	}
	fmt.Fprintf(w, "    %s^%s\n", mark.String(), strings.Repeat("~", max(end-f.Column-1, 0)))
}
