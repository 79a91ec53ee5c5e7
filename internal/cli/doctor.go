package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/backend/docker"
	"github.com/llmsandbox/llmsandbox/backend/podman"
	"github.com/llmsandbox/llmsandbox/internal/bytesize"
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
	// Environments are those of the local backend.
	Environments []llmsandbox.EnvironmentInfo `json:"environments,omitempty"`
}

func newDoctorCommand() *cobra.Command {
	var place place
	var imageName string
	var asJSON, noProbe bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check what this machine can enforce and how to fix the rest",
		Long: `Check what a backend can enforce, what is missing, and how to fix it. Doctor opens a sandbox
and verifies it from the inside. For Docker and Podman, it also shows the connection. For
Kubernetes, it checks your permissions, and starts two pods to test whether the cluster
enforces NetworkPolicies. Without --backend, it checks the local backend, and prints one line
for each container engine. The exit code is 125 if sandboxes do not work.`,
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
			checked := stderr.begin("Checking what works here")
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
			checked()
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
	place.register(cmd.Flags())
	place.Pod.register(cmd.Flags())
	cmd.Flags().StringVar(&imageName, "image", "", "try a sandbox with this `IMAGE` (default: one that the backend has, or Python's)")
	cmd.Flags().BoolVar(&noProbe, "no-probe", false, "do not start pods to test whether NetworkPolicies are enforced")
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
	// Why they cannot be listed, environments ls says; the diagnosis goes on.
	d.Environments, _ = llmsandbox.Environments(ctx, &llmsandbox.Options{Backend: b, Image: imageName})
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
	w := newTable(out)
	fmt.Fprintf(w, "backend %s %s\n", d.Backend, d.Isolation)
	if len(d.Findings) > 0 {
		fmt.Fprintln(w)
		printFindings(w, d.Findings)
	}
	if len(d.Controls) > 0 {
		fmt.Fprintln(w)
		printControls(w, d.Controls)
	}
	if len(d.Environments) > 0 {
		fmt.Fprintln(w)
	}
	for _, e := range d.Environments {
		state := "not installed: llmsandbox setup " + e.Name
		if e.Installed {
			state = "installed, " + bytesize.Format(e.Size)
		}
		fmt.Fprintf(w, "environment %s\t%s\n", e.Name, state)
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
	fmt.Fprintln(w, "\t\tmore about one: `llmsandbox doctor --backend NAME`")
}

// engineTimeout bounds the questions to an engine, which may be on another machine, or busy.
const engineTimeout = 20 * time.Second

// diagnoseEngine looks at a container engine.
func diagnoseEngine(ctx context.Context, p *place, imageName string) (diagnosis, error) {
	var d diagnosis
	d.Backend = p.Backend
	asking, cancel := context.WithTimeout(ctx, engineTimeout)
	defer cancel()
	d.Findings = findings(asking, p.Backend)
	for _, f := range d.Findings {
		if f.Level == backend.LevelFailure {
			d.Error = f.Detail
			return d, ctx.Err()
		}
	}
	b, err := p.engine()
	if err != nil {
		return d, err
	}
	if d.Capabilities, err = b.Capabilities(asking); err != nil {
		return d, err
	}
	if imageName == "" {
		rows, err := p.languageImages(asking)
		if err != nil {
			return d, err
		}
		if imageName = anyPresent(rows); imageName == "" {
			d.Untried = "no language's image is there, and doctor pulls none: name one with --image"
			return d, nil
		}
	}
	d.try(ctx, b, imageName)
	return d, ctx.Err()
}

func anyPresent(rows []languageImage) string {
	for _, r := range rows {
		if r.Present {
			return r.Image
		}
	}
	return ""
}

func findings(ctx context.Context, name string) []backend.Finding {
	if name == podman.Name {
		return podman.Diagnose(ctx, nil)
	}
	return docker.Diagnose(ctx, nil)
}

// engineState is a container engine in a line.
type engineState struct {
	Name   string `json:"name"`
	Usable bool   `json:"usable"`
	Detail string `json:"detail"` // where it is, or what is wrong
}

// engineStates asks every container engine at once.
func engineStates(ctx context.Context) []engineState {
	ctx, cancel := context.WithTimeout(ctx, engineTimeout)
	defer cancel()
	states := []engineState{{Name: docker.Name}, {Name: podman.Name}}
	var all sync.WaitGroup
	for i := range states {
		all.Go(func() { states[i].Usable, states[i].Detail = summary(findings(ctx, states[i].Name)) })
	}
	all.Wait()
	return states
}

// summary is the failure among findings, or else what answered.
func summary(all []backend.Finding) (usable bool, detail string) {
	for _, f := range all {
		switch {
		case f.Level == backend.LevelFailure:
			return false, f.Detail
		case f.Check == "answer":
			detail = f.Detail
		}
	}
	return true, detail
}

// clusterTimeout bounds the questions to a cluster and the pods that try its network,
// whose image may have to be pulled.
const clusterTimeout = 5 * time.Minute

// diagnoseCluster looks at a cluster. What its pods show of the network holds for the
// sandbox that is tried then.
func diagnoseCluster(ctx context.Context, p *place, imageName string, probe bool) (diagnosis, error) {
	var d diagnosis
	d.Backend = p.Backend
	o, err := p.clusterOptions()
	if err != nil {
		return d, err
	}
	if linked == nil {
		return d, errNotLinked
	}
	asking, cancel := context.WithTimeout(ctx, clusterTimeout)
	defer cancel()
	image := cmp.Or(imageName, pythonImage())
	report, err := linked.Diagnose(asking, o, image, probe)
	if err != nil {
		return d, err
	}
	if d.Findings, d.Error = report.Findings, report.Error; d.Error != "" {
		return d, nil
	}
	b := report.Backend
	if d.Capabilities, err = b.Capabilities(asking); err != nil {
		return d, errors.Join(err, b.Close())
	}
	if o.Pod != "" {
		image = "" // the pod's own
	}
	d.try(ctx, b, image)
	return d, errors.Join(ctx.Err(), b.Close())
}

// probe prints, one fact a line, what a program inside sees of its confinement.
const probe = `while read -r key value rest; do case $key in
Seccomp:|NoNewPrivs:|Cap*) echo "$key $value";; esac; done </proc/self/status
echo "core: $(ulimit -c)"
while read -r name rest; do case $name in *:*) echo "interface: ${name%%:*}";; esac; done </proc/net/dev
for dir in / /usr /etc; do if (: >"$dir/.llmsandbox-probe") 2>/dev/null; then echo "writable: $dir"; fi; done
for file in /etc/passwd /proc/1/status; do if (: <"$file") 2>/dev/null; then echo "readable: $file"; fi; done
for pid in 1 $PPID; do if kill -0 $pid 2>/dev/null; then echo "signals: $pid"; fi; done
for ns in user mnt pid net ipc time; do echo "ns-$ns: $(readlink /proc/self/ns/$ns)"; done
while read -r id parent dev root rest; do case $root in */.cache/*|/home/*|/root/*) echo "path: $root";; esac; done </proc/self/mountinfo
exit 7`

// observed is what the probe printed, by key; a key may have several values.
type observed map[string][]string

func parseProbe(text string) observed {
	o := observed{}
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		key, value, _ := strings.Cut(lines.Text(), ":")
		o[key] = append(o[key], strings.TrimSpace(value))
	}
	return o
}

// only tells whether a key was seen, with nothing but one value.
func (o observed) only(key, value string) bool {
	for _, v := range o[key] {
		if v != value {
			return false
		}
	}
	return len(o[key]) > 0
}

// noCapabilities tells whether all five sets were seen and are empty.
func (o observed) noCapabilities() bool {
	return o.holdsNone() && o.only("CapBnd", strings.Repeat("0", 16))
}

// holdsNone tells whether the program holds no capabilities. No_new_privs takes the meaning from the bounding set, which an ordinary
// user cannot empty.
func (o observed) holdsNone() bool {
	for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapAmb"} {
		if !o.only(set, strings.Repeat("0", 16)) {
			return false
		}
	}
	return true
}

// ownNamespace tells whether the sandbox has another namespace than this process.
// Where this process has none to compare with, it is taken for granted.
func (o observed) ownNamespace(kind string) bool {
	host, err := os.Readlink("/proc/self/ns/" + kind)
	return err != nil || len(o["ns-"+kind]) == 1 && o["ns-"+kind][0] != host && o["ns-"+kind][0] != ""
}

// A check compares a control, when it is declared as enforced, with what was seen.
type check struct {
	control string
	holds   func(observed) bool
	wrong   string
	proc    bool // seen in a sandbox with a /proc of its own only
}

var checks = []check{
	{"seccomp", func(o observed) bool { return o.only("Seccomp", "2") }, "no filter is on the program", true},
	{"no-new-privs", func(o observed) bool { return o.only("NoNewPrivs", "1") }, "the program may gain privileges", true},
	{"capabilities", observed.noCapabilities, "the program has capabilities", true},
	{"core-dumps", func(o observed) bool { return o.only("core", "0") }, "the program may dump core", false},
	{"network", func(o observed) bool { return o.only("interface", "lo") && o.ownNamespace("net") }, "there is more than loopback", true},
	{"filesystem", func(o observed) bool { return len(o["writable"]) == 0 }, "the root can be written to", false},
	{"filesystem", func(o observed) bool { return o.ownNamespace("mnt") }, "the root is the host's", true},
	{"processes", func(o observed) bool { return o.ownNamespace("pid") }, "the host's processes are seen", true},
	{"ipc", func(o observed) bool { return o.ownNamespace("ipc") }, "IPC is shared with the host", true},
	{"user-namespace", func(o observed) bool { return o.ownNamespace("user") }, "users are the host's", true},
	{"hidden-uptime", func(o observed) bool { return o.ownNamespace("time") }, "the clocks are the host's", true},
	{"host-paths", func(o observed) bool { return len(o["path"]) == 0 }, "the mount table names directories of users", false},
}

// inPlaceChecks take the place of those that look at namespaces where there are none.
var inPlaceChecks = []check{
	{"capabilities", observed.holdsNone, "the program has capabilities", false},
	{"filesystem", func(o observed) bool { return len(o["writable"])+len(o["readable"]) == 0 }, "files of this place can be read or written", false},
	{"processes", func(o observed) bool { return len(o["signals"]) == 0 }, "processes of this place can be signalled", false},
	{"network", func(observed) bool { return true }, "", false}, // the filter keeps from it, as from the next
	{"ipc", func(observed) bool { return true }, "", false},
}

// checksOf returns the checks for an isolation.
func checksOf(isolation string) []check {
	if isolation != "process" {
		return checks
	}
	replaced := func(c check) bool {
		return slices.ContainsFunc(inPlaceChecks, func(k check) bool { return k.control == c.control })
	}
	return append(slices.DeleteFunc(slices.Clone(checks), replaced), inPlaceChecks...)
}

// verify looks from inside whether what a sandbox declares to be enforced is.
func verify(ctx context.Context, sb *llmsandbox.Sandbox) error {
	res, err := sb.Shell(ctx, probe, nil)
	if err != nil {
		return err
	}
	if res.ExitCode != 7 {
		return fmt.Errorf("a program that exits with 7 was seen to end as %q: %s", res.Status, res.Reason)
	}
	return compare(sb.Capabilities(), parseProbe(res.Stdout))
}

// compare returns every control that is declared as enforced and does not hold.
func compare(caps backend.Capabilities, seen observed) error {
	var errs []error
	proc, known := caps.Get("proc")
	for _, c := range checksOf(caps.Isolation) {
		k, ok := caps.Get(c.control)
		if c.proc && known && !proc.Enforced {
			continue
		}
		if c.control == "network" && strings.HasPrefix(k.By, "NetworkPolicy") {
			continue // a pod has more than loopback; that the rest leads nowhere was tried before
		}
		if ok && k.Enforced && !c.holds(seen) {
			errs = append(errs, fmt.Errorf("%s is declared as enforced by %s, but from inside %s: run nothing untrusted here, and report this", c.control, k.By, c.wrong))
		}
	}
	return errors.Join(errs...)
}
