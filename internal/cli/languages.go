package cli

import (
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/language/all"
)

func newLanguagesCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "languages",
		Short:   "List languages and whether this machine has them",
		Example: `  llmsandbox languages`,
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			type row struct {
				Name       string   `json:"name"`
				Aliases    []string `json:"aliases"`
				Extensions []string `json:"extensions"`
				Missing    []string `json:"missing"`
				Install    string   `json:"install,omitempty"`
			}
			var rows []row
			for _, l := range all.All() {
				r := row{Name: l.Name, Aliases: l.Aliases, Extensions: l.Extensions, Missing: missingPrograms(l)}
				if len(r.Missing) > 0 {
					r.Install = l.Install
				}
				rows = append(rows, r)
			}
			if asJSON {
				return printJSON(rows)
			}
			w := newTable(os.Stdout)
			fmt.Fprintln(w, "LANGUAGE\tALIASES\tENDINGS\tON THIS MACHINE")
			for _, r := range rows {
				state := "yes"
				if len(r.Missing) > 0 {
					state = "no " + strings.Join(r.Missing, ", ") + ": " + r.Install
				}
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", r.Name, strings.Join(r.Aliases, " "), strings.Join(r.Extensions, " "), state)
			}
			return w.Flush()
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	return cmd
}

// missingPrograms are a language's programs that are not in this machine's PATH.
func missingPrograms(l *language.Language) []string {
	missing := []string{}
	for _, alternatives := range l.Programs {
		found := false
		for _, p := range alternatives {
			if _, err := exec.LookPath(p); err == nil {
				found = true
			}
		}
		if !found && len(alternatives) > 0 {
			missing = append(missing, alternatives[0])
		}
	}
	return missing
}
