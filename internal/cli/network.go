package cli

import (
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/termsafe"
)

const networkUsage = "`MODE` is none, full, os-packages or allow=HOST[:PORT],... (repeatable)"

// networkFlag reads the values of --network. Rules may also be given beside full, to name
// addresses that it refuses.
func networkFlag(values []string) (llmsandbox.Network, error) {
	var n llmsandbox.Network
	seen := map[llmsandbox.NetworkMode]bool{}
	for _, value := range values {
		mode, rules, given := strings.Cut(value, "=")
		switch m := llmsandbox.NetworkMode(mode); {
		case given && m == llmsandbox.NetworkAllow:
			for rule := range strings.SplitSeq(rules, ",") {
				if rule = strings.TrimSpace(rule); rule != "" {
					n.Allow = append(n.Allow, rule)
				}
			}
			if len(n.Allow) == 0 {
				return n, fmt.Errorf("--network %q: name at least one host, such as allow=example.org", value)
			}
			seen[m] = true
		case value == llmsandbox.PackageHosts:
			n.Allow = append(n.Allow, value)
			seen[llmsandbox.NetworkAllow] = true
		case !given && (m == llmsandbox.NetworkNone || m == llmsandbox.NetworkFull):
			seen[m] = true
		default:
			return n, fmt.Errorf("--network %q: use none, full, os-packages or allow=RULE with rules such as example.org:443", value)
		}
	}
	switch {
	case seen[llmsandbox.NetworkNone] && len(seen) > 1:
		return n, fmt.Errorf("--network none cannot be given together with others")
	case seen[llmsandbox.NetworkNone]:
		n.Mode = llmsandbox.NetworkNone // and not a template's
	case seen[llmsandbox.NetworkFull]:
		n.Mode = llmsandbox.NetworkFull
	case seen[llmsandbox.NetworkAllow]:
		n.Mode = llmsandbox.NetworkAllow
	}
	return n, nil
}

// networkText writes a mode and its rules.
func networkText(mode llmsandbox.NetworkMode, allow []string) string {
	return strings.TrimSuffix(string(mode)+"="+strings.Join(allow, ","), "=")
}

func newNetworkCommand() *cobra.Command {
	var at place
	var values []string
	cmd := &cobra.Command{
		Use:   "network [flags] ID",
		Short: "Show or change the network access of a sandbox",
		Long: `Show what a sandbox may reach, or change it with --network. A rule of allow is HOST[:PORT],
*.DOMAIN[:PORT], an IP address or a CIDR range. Connections that are no longer allowed are
closed at once.`,
		Example: `  llmsandbox network "$id"
  llmsandbox network --network allow=example.org:443 "$id"
  llmsandbox network --network none "$id"`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := networkFlag(values)
			if err != nil {
				return err
			}
			return onSandbox(cmd.Context(), &at, args[0], func(sb *llmsandbox.Sandbox) error {
				if len(values) > 0 {
					return sb.SetNetwork(cmd.Context(), n)
				}
				n, err := sb.Network(cmd.Context())
				if err == nil {
					fmt.Println(networkText(n.Mode, n.Allow))
				}
				return err
			})
		},
	}
	at.register(cmd.Flags())
	cmd.Flags().StringArrayVar(&values, "network", nil, networkUsage)
	return cmd
}

// maxRefusedLines bounds what is said on stderr of refused attempts.
const maxRefusedLines = 10

// printRefused says what a run could not reach, each once.
func printRefused(w io.Writer, attempts []llmsandbox.NetworkAttempt) {
	said := map[string]bool{}
	for _, a := range attempts {
		what := "refused"
		switch {
		case a.Allowed && (a.Reason == "" || a.Address.IsValid()):
			continue
		case a.Allowed:
			what = "could not reach"
		}
		at := a.Name
		if a.Port != 0 {
			at = net.JoinHostPort(a.Name, strconv.Itoa(int(a.Port)))
		}
		line := fmt.Sprintf("llmsandbox: network: %s %s: %s", what, oneLine(at), oneLine(a.Reason))
		if said[line] {
			continue
		}
		said[line] = true
		if len(said) <= maxRefusedLines {
			fmt.Fprintln(w, line)
		}
	}
	if more := len(said) - maxRefusedLines; more > 0 {
		fmt.Fprintf(w, "llmsandbox: network: and %d more; --json has all\n", more)
	}
}

// oneLine makes a text that came from inside harmless and one line.
func oneLine(text string) string {
	ends := func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }
	return strings.Join(strings.FieldsFunc(termsafe.String(text), ends), " ")
}
