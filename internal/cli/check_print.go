package cli

import (
	"bufio"
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

// printReport tells findings as a compiler tells errors.
func printReport(to io.Writer, report security.Report, lines codeLines) error {
	w := bufio.NewWriter(to)
	p := findingPrinter{w: w, to: to, lines: lines}
	count := map[security.Severity]int{}
	for _, f := range report.Findings {
		count[f.Severity]++
		p.print(f)
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
