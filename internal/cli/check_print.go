package cli

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/llmsandbox/llmsandbox/internal/termsafe"
	"github.com/llmsandbox/llmsandbox/security"
	"github.com/llmsandbox/llmsandbox/security/policyfile"
)

// listPolicies prints the built-in policies.
func listPolicies() error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "POLICY\tREFUSES FROM\tCOMPUTED\tWHAT IT IS")
	for _, name := range security.Presets() {
		p, err := security.Preset(name)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s\t%v\t%v\t%s\n", name, p.Threshold, p.Computed, p.Description)
	}
	return w.Flush()
}

// printPolicy prints a policy as a file to start from, checked.
func printPolicy(nameOrPath string) error {
	checker, err := policyfile.Load(nameOrPath)
	if err != nil {
		return fmt.Errorf("--print: %w", err)
	}
	text, err := policyfile.Format(checker.Policy())
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(text)
	return err
}

// linesOf are the lines of all files by their names.
func linesOf(programs []security.Program) map[string][][]byte {
	lines := map[string][][]byte{}
	for _, p := range programs {
		lines[p.Name] = bytes.Split(p.Code, []byte("\n"))
		for name, data := range p.Files {
			lines[name] = bytes.Split(data, []byte("\n"))
		}
	}
	return lines
}

// printReport tells findings as a compiler tells errors.
func printReport(to io.Writer, report security.Report, lines map[string][][]byte) error {
	w := bufio.NewWriter(to)
	count := map[security.Severity]int{}
	for _, f := range report.Findings {
		count[f.Severity]++
		at := termsafe.String(f.File)
		if f.Line > 0 {
			at = fmt.Sprintf("%s:%d:%d", at, f.Line, f.Column)
		} else {
			at = "--lib " + termsafe.String(f.Code)
		}
		fmt.Fprintf(w, "%s: %s: %s [%s]\n", at, paint(to, severityColour(f.Severity), f.Severity.String()), termsafe.String(f.Reason), termsafe.String(f.Rule))
		if l := lines[f.File]; f.Line > 0 && f.Line <= len(l) {
			printLine(w, f, l[f.Line-1])
		}
	}
	verdict := paint(to, green, "passed")
	if report.Blocked {
		verdict = paint(to, red, "refused")
	}
	by := "policy " + termsafe.String(report.Policy)
	if report.Policy == "" {
		by = "policy without a name"
	}
	fmt.Fprintf(w, "%s: %s, %s\n", verdict, by, counts(count, report))
	return w.Flush()
}

func severityColour(s security.Severity) colour {
	if s == security.High {
		return red
	}
	return yellow
}

func counts(count map[security.Severity]int, report security.Report) string {
	total := len(report.Findings) + report.Omitted
	if total == 0 {
		return "nothing found"
	}
	var parts []string
	for s := security.High; s >= security.Safe; s-- {
		if count[s] > 0 {
			parts = append(parts, fmt.Sprintf("%d %v", count[s], s))
		}
	}
	if report.Omitted > 0 {
		parts = append(parts, fmt.Sprintf("%d not shown", report.Omitted))
	}
	refuses := fmt.Sprintf("; it refuses from %v on", report.Threshold)
	if report.Threshold == security.Safe {
		refuses = "; it refuses nothing"
	}
	return fmt.Sprintf("%d found: %s%s", total, strings.Join(parts, ", "), refuses)
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
