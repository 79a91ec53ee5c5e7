package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/configdir"
	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/language/all"
	"github.com/llmsandbox/llmsandbox/internal/termsafe"
)

func newLanguagesCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "languages",
		Short: "List languages and their versions on this machine",
		Long: `List languages, their versions on this machine and installed environments. Versions come from
the toolchains in a local sandbox; 'yes' means that the version is unknown.`,
		Example: `  llmsandbox languages`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			type row struct {
				Name       string   `json:"name"`
				Aliases    []string `json:"aliases"`
				Extensions []string `json:"extensions"`
				Missing    []string `json:"missing"`
				Version    string   `json:"version,omitempty"`
				Install    string   `json:"install,omitempty"`
				Untested   bool     `json:"untested,omitempty"`
				// Environments are the installed ones.
				Environments []string `json:"environments,omitempty"`
			}
			// Why they cannot be listed, environments ls says; the languages can.
			environments, _ := llmsandbox.Environments(cmd.Context(), nil)
			versions := toolchainVersions(cmd.Context())
			var rows []row
			for _, l := range all.All() {
				r := row{Name: l.Name, Aliases: l.Aliases, Extensions: l.Extensions, Missing: missingPrograms(l), Untested: l.Details.Untested}
				if len(r.Missing) > 0 {
					r.Install = l.Install
				} else {
					r.Version = versions[l.Name]
				}
				for _, e := range environments {
					if e.Installed && e.Language == l.Name {
						r.Environments = append(r.Environments, e.Name)
					}
				}
				rows = append(rows, r)
			}
			if asJSON {
				return printJSON(rows)
			}
			w := newTable(os.Stdout)
			fmt.Fprintln(w, "LANGUAGE\tALIASES\tENDINGS\tON THIS MACHINE")
			for _, r := range rows {
				state := strings.Join(append([]string{cmp.Or(termsafe.String(r.Version), "yes")}, r.Environments...), "; environment ")
				if len(r.Missing) > 0 {
					state = "no " + strings.Join(r.Missing, ", ") + ": " + r.Install
				}
				if r.Untested {
					state += " (not tested)"
				}
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", r.Name, strings.Join(r.Aliases, " "), strings.Join(r.Extensions, " "), state)
			}
			return w.Flush()
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	registerLanguageFile(cmd.Flags(), new([]string))
	return cmd
}

// toolchainVersions is what each toolchain in a local sandbox says first of itself, by language. That it cannot
// be asked is no error: doctor says why no sandbox works.
func toolchainVersions(ctx context.Context) map[string]string {
	b, err := localBackend("")
	if err != nil {
		return nil
	}
	sb, err := llmsandbox.Open(ctx, &llmsandbox.Options{Backend: b, BestEffort: true})
	if err != nil {
		return nil
	}
	defer sb.Close()
	versions := map[string]string{}
	var mu sync.Mutex // of versions
	var asked sync.WaitGroup
	for _, l := range all.All() {
		asked.Go(func() {
			version := toolchainVersion(ctx, sb, l)
			mu.Lock()
			defer mu.Unlock()
			versions[l.Name] = version
		})
	}
	asked.Wait()
	return versions
}

func toolchainVersion(ctx context.Context, sb *llmsandbox.Sandbox, l *language.Language) string {
	for _, program := range l.Alternatives(l.Details.Version[0]) {
		res, err := sb.Exec(ctx, append([]string{program}, l.Details.Version[1:]...), &llmsandbox.ExecOptions{Timeout: 20 * time.Second})
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil || !res.OK() {
			break
		}
		line, _, _ := strings.Cut(strings.TrimSpace(res.Stdout+res.Stderr), "\n") // old ones write to stderr
		return line
	}
	return ""
}

// missingPrograms are a language's programs that are not in this machine's PATH.
func missingPrograms(l *language.Language) []string {
	missing := []string{}
	for _, alternatives := range l.Programs {
		found := func(p string) bool { _, err := exec.LookPath(p); return err == nil }
		if len(alternatives) > 0 && !slices.ContainsFunc(alternatives, found) {
			missing = append(missing, alternatives[0])
		}
	}
	return missing
}

// languageFileFlag is the flag of commands that use languages.
const languageFileFlag = "language-file"

func registerLanguageFile(set *pflag.FlagSet, files *[]string) {
	set.StringArrayVar(files, languageFileFlag, nil, "add the language that this `FILE` declares (repeatable)")
}

// loadLanguages adds the user's own languages, which are in the directory languages beside the configuration file,
// and those of --language-file. A file that is not valid ends a command that uses languages; others warn of it.
func loadLanguages(set *pflag.FlagSet) error {
	uses := set.Lookup(languageFileFlag)
	if dir, err := configdir.Default(); err == nil { // without a home there are none
		err := all.LoadDir(filepath.Join(dir, "languages"))
		if err != nil && uses != nil {
			return err
		}
		if err != nil {
			stderr.note("llmsandbox: warning: " + err.Error())
		}
	}
	if uses == nil {
		return nil
	}
	return loadLanguageFiles(uses.Value.(pflag.SliceValue).GetSlice())
}

func loadLanguageFiles(files []string) error {
	for _, file := range files {
		if _, err := llmsandbox.LoadLanguage(file); err != nil {
			return fmt.Errorf("--%s: %w", languageFileFlag, withoutCall(err))
		}
	}
	return nil
}
