package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/llmsandbox/llmsandbox/backend/docker"
	"github.com/llmsandbox/llmsandbox/backend/podman"
)

const (
	helpColumns = 100
	// fewFlags are shown in one list, whatever their groups.
	fewFlags = 8
)

// A flagGroup is a heading in help and in the reference. Each flag of each command belongs to one, by its name.
type flagGroup struct {
	title string
	// flags are shown by --help, in this order; rare by --help-all only.
	flags, rare string
	// backends are those that the flags are for; nil: all. The flags are shown with one of these backends.
	backends []string
}

var (
	engines    = []string{docker.Name, podman.Name, micromambaName}
	flagGroups = []flagGroup{
		{title: "Server", flags: "listen state session-ttl session-idle max-ttl log",
			rare: "until-stdin-closes tls-cert tls-key behind-proxy max-calls max-sessions max-sandboxes project-memory project-disk project-cpu-per-day project-egress-per-day max-volumes max-images max-runs max-requests-per-second keep-audit allow-origin allow-host ports-domain e2b allow-image database replica-url new-secret oidc-issuer oidc-client-id oidc-client-secret-file oidc-grant oidc-scope project scope expires sandbox since limit"},
		{title: "Code", flags: "code lang language template env policy print list warn tty shell user", rare: "language-file standard policy-warn schema plain"},
		{title: "Files", flags: "file mount out artifacts workdir", rare: "volume keep-files writable-root sudo commit overwrite-tag push stdin notebook keep-going force"},
		{title: "Libraries", flags: "lib environment import requirements from no-libraries",
			rare: "lib-from-script allow-install lib-from offline install-timeout zygote"},
		{title: "Network", flags: "network secret address", rare: "secret-file secret-in-body"},
		{title: "Limits", flags: "memory cpus pids disk timeout", rare: "output best-effort gpus"},
		{title: "Output", flags: "json sarif follow quiet", rare: "verbose raw capabilities text-errors"},
		{title: "Cache", flags: "unused max-size all"},
		{title: "Volume", flags: "size"},
		{title: "Backend", flags: "backend image image-for platform warm keep ttl", rare: "isolation warm-language idle label keep-children"},
		{title: "Docker and Podman", backends: engines,
			flags: "runtime-option container dockerfile build-arg build-context keep-image micromamba-env micromamba-package micromamba-channel"},
		{title: "Kubernetes", backends: []string{kubernetesName},
			flags: "kubeconfig kube-context namespace pod pod-container pod-template runtime-class agent-image pull-policy pull-secret service-account node-selector wait-for-node start-timeout network-policy-enforced no-probe storage-class volume-access"},
	}
)

// The groups of commands.
const (
	codeGroup    = "code"
	sandboxGroup = "sandbox"
	stockGroup   = "stock"
	machineGroup = "machine"
)

// group puts commands below a heading of the help of root.
func group(root *cobra.Command, id, title string, names ...string) {
	root.AddGroup(&cobra.Group{ID: id, Title: title})
	for _, name := range names {
		c := commands[name]()
		c.GroupID = id
		root.AddCommand(c)
	}
}

// helpAllFlag is --help-all, which sets --help too.
type helpAllFlag struct {
	set *pflag.FlagSet
	on  bool
}

const helpAllName = "help-all"

func (f *helpAllFlag) String() string   { return "false" }
func (f *helpAllFlag) Type() string     { return "bool" }
func (f *helpAllFlag) IsBoolFlag() bool { return true }
func (f *helpAllFlag) Set(text string) error {
	f.on = text == "true"
	return f.set.Set("help", text)
}

// setHelp gives a command and those below it their help.
func setHelp(root *cobra.Command) {
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		backend := ""
		if f := cmd.Flags().Lookup("backend"); f != nil {
			_ = configure(cmd) // the command itself says what is wrong with it
			backend = f.Value.String()
		}
		all := false
		if f := cmd.Flags().Lookup(helpAllName); f != nil {
			all = f.Value.(*helpAllFlag).on
		}
		_, _ = io.WriteString(cmd.OutOrStdout(), helpText(cmd, backend, all))
	})
	var addAll func(*cobra.Command)
	addAll = func(cmd *cobra.Command) {
		for _, c := range cmd.Commands() {
			addAll(c)
		}
		if _, hides := groupedFlags(cmd, "", false); !hides {
			return
		}
		f := cmd.Flags().VarPF(&helpAllFlag{set: cmd.Flags()}, helpAllName, "", "show help with all flags")
		f.NoOptDefVal = "true"
	}
	addAll(root)
}

// helpText is the help of a command; backend is empty if it has no such flag.
func helpText(cmd *cobra.Command, backend string, all bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\nUsage:\n", cmp.Or(cmd.Long, cmd.Short))
	if works(cmd) {
		fmt.Fprintf(&b, "  %s\n", cmd.UseLine())
	}
	if !works(cmd) || cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "  %s COMMAND\n", cmd.CommandPath())
		writeCommands(&b, cmd)
	}
	groups, hidden := groupedFlags(cmd, backend, all)
	for _, g := range groups {
		set := pflag.NewFlagSet(g.title, pflag.ContinueOnError)
		set.SortFlags = false
		for _, f := range g.flags {
			set.AddFlag(f)
		}
		fmt.Fprintf(&b, "\n%s:\n%s", g.title, set.FlagUsagesWrapped(helpColumns))
	}
	if cmd.Example != "" {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", cmd.Example)
	}
	switch {
	case hidden:
		fmt.Fprintf(&b, "\nShow all flags: %s --help-all; those of a backend: --backend NAME --help\n", cmd.CommandPath())
	case cmd.HasAvailableSubCommands():
		fmt.Fprintf(&b, "\nShow the help of a command: %s COMMAND --help\n", cmd.CommandPath())
	}
	return b.String()
}

// works tells whether a command does something itself, as those without others below them do, and setup.
func works(cmd *cobra.Command) bool {
	return cmd.Runnable() && (!cmd.HasAvailableSubCommands() || strings.Contains(cmd.Use, " "))
}

// writeCommands lists the commands below cmd by their groups.
func writeCommands(b *strings.Builder, cmd *cobra.Command) {
	width := 0
	for _, c := range cmd.Commands() {
		width = max(width, len(c.Name()))
	}
	for _, g := range append(cmd.Groups(), &cobra.Group{Title: "Commands"}) {
		titled := false
		for _, c := range cmd.Commands() {
			if c.GroupID != g.ID || c.Hidden || !c.IsAvailableCommand() && !c.IsAdditionalHelpTopicCommand() {
				continue
			}
			if !titled {
				fmt.Fprintf(b, "\n%s:\n", g.Title)
			}
			titled = true
			fmt.Fprintf(b, "  %-*s  %s\n", width, c.Name(), c.Short)
		}
	}
}

// shownGroup is a heading and the flags below it.
type shownGroup struct {
	title string
	flags []*pflag.Flag
}

// groupedFlags returns the flags that help shows, and whether it leaves some out. Flags that are in
// no group come last.
func groupedFlags(cmd *cobra.Command, backend string, all bool) (groups []shownGroup, hidden bool) {
	set := cmd.Flags()
	rest := map[string]*pflag.Flag{}
	set.VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" && f.Name != helpAllName && f.Name != "version" && !f.Hidden {
			rest[f.Name] = f
		}
	})
	common := 0
	for _, g := range flagGroups {
		for name := range strings.FieldsSeq(g.flags + " " + g.rare) {
			if rest[name] != nil && g.backends == nil {
				common++
			}
		}
	}
	for _, g := range flagGroups {
		shown := shownGroup{title: g.title}
		add := func(names string, show bool) {
			for name := range strings.FieldsSeq(names) {
				f := rest[name]
				delete(rest, name)
				if f == nil {
					continue
				}
				if show || f.Changed {
					shown.flags = append(shown.flags, f)
				} else {
					hidden = true
				}
			}
		}
		fits := g.backends == nil || slices.Contains(g.backends, backend)
		add(g.flags, all || fits)
		add(g.rare, all || fits && common <= fewFlags)
		if len(shown.flags) > 0 {
			groups = append(groups, shown)
		}
	}
	last := shownGroup{title: "Other"}
	set.VisitAll(func(f *pflag.Flag) {
		if rest[f.Name] != nil {
			last.flags = append(last.flags, f)
		}
	})
	if len(last.flags) > 0 {
		groups = append(groups, last)
	}
	shown := shownGroup{title: "Flags"}
	for _, g := range groups {
		shown.flags = append(shown.flags, g.flags...)
	}
	if n := len(shown.flags); n > 0 && n <= fewFlags {
		groups = []shownGroup{shown}
	}
	return groups, hidden
}
