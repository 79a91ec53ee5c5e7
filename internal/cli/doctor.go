package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/termsafe"
)

// A diagnosis is what doctor finds out.
type diagnosis struct {
	backend.Capabilities
	// Findings are what was looked at of a container engine or a cluster.
	Findings []backend.Finding `json:"findings,omitempty"`
	// Works tells that a sandbox was opened and is, seen from inside, what it declares.
	Works bool `json:"works"`
	// Image is what that sandbox was made from.
	Image string `json:"image,omitempty"`
	// Untried is why none was opened, where that is no fault of the backend.
	Untried string `json:"untried,omitempty"`
	Error   string `json:"error,omitempty"`
	// Engines are the container engines beside the local backend.
	Engines []engineState `json:"engines,omitempty"`
}

func newDoctorCommand() *cobra.Command {
	var place place
	var imageName string
	var asJSON, noProbe bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Tell what a backend can enforce here, what is missing, and how to fix it",
		Long: `Tell what a backend can enforce here, what is missing, and how to fix it: of a container
engine also how it is reached and what it can, of a Kubernetes cluster also what this user may
do there, and by two pods whether it enforces network policies. A sandbox is opened, and looked at from inside
whether it is what it declares. Without --backend it is the local backend, and one line each
tells of the container engines. The exit code is 125 when sandboxes do not work.`,
		Example: `  llmsandbox doctor
  llmsandbox doctor --backend docker
  llmsandbox doctor --backend podman --image python:3.13-slim-bookworm --json
  llmsandbox doctor --backend kubernetes --namespace llmsandbox --runtime-class gvisor`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := place.check(imageName, false); err != nil {
				return err
			}
			if err := place.checkCluster(); err != nil {
				return err
			}
			if noProbe && !place.onCluster() {
				return fmt.Errorf("--no-probe is for clusters, and the backend is %s: add --backend kubernetes", place.Backend)
			}
			var d diagnosis
			var err error
			switch {
			case place.onCluster():
				d, err = diagnoseCluster(cmd.Context(), &place, imageName, !noProbe)
			case place.onEngine():
				d, err = diagnoseEngine(cmd.Context(), &place, imageName)
			default:
				d, err = diagnoseLocal(cmd.Context(), &place, imageName)
				if err == nil && !cmd.Flags().Changed("backend") {
					d.Engines = engineStates(cmd.Context())
				}
			}
			if err != nil {
				return placed(&place, err)
			}
			if asJSON {
				err = printJSON(d)
			} else {
				err = printDiagnosis(os.Stdout, d)
			}
			if err == nil && d.Error != "" {
				err = exitCode(exitOurFailure)
			}
			return err
		},
	}
	place.register(cmd.Flags(), "what to look at")
	place.Pod.register(cmd.Flags())
	cmd.Flags().StringVar(&imageName, "image", "", "image to try a sandbox in (default: on a container engine a language's that is there, on kubernetes Python's)")
	cmd.Flags().BoolVar(&noProbe, "no-probe", false, onKubernetes+"start no pods that try whether network policies are enforced")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}

// diagnoseLocal looks at the local backend.
func diagnoseLocal(ctx context.Context, p *place, imageName string) (diagnosis, error) {
	var d diagnosis
	b, err := p.open()
	if err != nil {
		return d, err
	}
	if d.Capabilities, err = b.Capabilities(ctx); err != nil {
		return d, err
	}
	d.try(ctx, b, cmp.Or(imageName, "host"))
	return d, nil
}

// try opens a sandbox and looks from inside whether it is what it declares: what a
// backend promises is one thing, whether a sandbox starts another. The sandbox's own
// controls take the place of those that were promised.
func (d *diagnosis) try(ctx context.Context, b backend.Backend, imageName string) {
	d.Image = imageName
	sb, err := llmsandbox.Open(ctx, &llmsandbox.Options{Language: "bash", Backend: b, Image: imageName})
	if err == nil {
		err = errors.Join(verify(ctx, sb), sb.Close())
		d.Capabilities = sb.Capabilities()
	}
	if err != nil {
		d.Error = err.Error()
		return
	}
	d.Works = true
}

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

func printFindings(w io.Writer, all []backend.Finding) {
	for _, f := range all {
		level := string(f.Level)
		if f.Level == backend.LevelFailure {
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
