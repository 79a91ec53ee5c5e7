package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/backend/engine/diagnose"
	"github.com/llmsandbox/llmsandbox/internal/termsafe"
)

// printDiagnosis prints for people. What an engine says may hold anything.
func printDiagnosis(out io.Writer, d diagnosis) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "backend %s %s\n", d.Backend, d.Isolation)
	if len(d.Findings) > 0 {
		fmt.Fprintln(w)
		printFindings(w, d.Findings)
	}
	if len(d.Controls) > 0 {
		fmt.Fprintln(w)
		printControls(w, d.Controls)
	}
	if len(d.Engines) > 0 {
		fmt.Fprintln(w)
		printEngines(w, d.Engines)
	}
	fmt.Fprintln(w)
	switch {
	case d.Error != "":
		fmt.Fprintf(w, "%s: %s\n", paint(os.Stdout, red, "A sandbox does NOT work here"), termsafe.String(d.Error))
	case d.Works:
		fmt.Fprintf(w, "%s (image %s)\n", paint(os.Stdout, green, "A sandbox works here."), termsafe.String(d.Image))
	default:
		fmt.Fprintf(w, "%s: %s\n", paint(os.Stdout, yellow, "No sandbox was tried"), termsafe.String(d.Untried))
	}
	return w.Flush()
}

func printFindings(w io.Writer, all []diagnose.Finding) {
	for _, f := range all {
		level := string(f.Level)
		if f.Level == diagnose.Failure {
			level = "FAILURE"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", level, f.Check, termsafe.String(f.Detail))
		if f.Fix != "" {
			// A fix may be lines of a file.
			fmt.Fprintf(w, "\t\tfix: %s\n", strings.ReplaceAll(f.Fix, "\n", "\n\t\t     "))
		}
	}
}

func printControls(w io.Writer, all []backend.Control) {
	for _, c := range all {
		mark := "yes"
		if !c.Enforced {
			mark = "NO"
		}
		by := c.By
		if c.Detail != "" {
			by += " (" + termsafe.String(c.Detail) + ")"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", mark, c.Name, by)
		if c.Why != "" {
			fmt.Fprintf(w, "\t\twhy: %s\n", c.Why)
		}
		if c.Fix != "" {
			fmt.Fprintf(w, "\t\tfix: %s\n", c.Fix)
		}
	}
}

func printEngines(w io.Writer, all []engineState) {
	for _, e := range all {
		usable := "usable"
		if !e.Usable {
			usable = "not usable"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", e.Name, usable, termsafe.String(e.Detail))
	}
	fmt.Fprintf(w, "\t\t`llmsandbox doctor --backend %s` tells more\n", all[0].Name)
}
