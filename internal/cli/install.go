package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/llmsandbox/llmsandbox"
)

func newInstallCommand() *cobra.Command {
	var place place
	var how libraryFlags
	var lang string
	cmd := &cobra.Command{
		Use:   "install [flags] ID LIBRARY...",
		Short: "Install libraries in a kept sandbox",
		Long: `Install libraries in a sandbox that create or run --keep left. They are installed in a
sandbox of their own, which reaches nothing but the package registries, and copied into this
one; a list that is cached needs no network. A library is named as its ecosystem names it:
requests>=2,<3 or numpy[extra], @types/node@20, org.apache.commons:commons-lang3:3.14.0,
golang.org/x/text@v0.14.0, data.table, nokogiri:1.15.0, libssl-dev.`,
		Example: `  id=$(llmsandbox create --lang python)
  llmsandbox install "$id" six 'requests>=2,<3'
  llmsandbox install --lib-from ./wheels "$id" mypackage`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := how.options()
			if err != nil {
				return err
			}
			b, err := place.open()
			if err != nil {
				return err
			}
			progress := &progressShower{}
			defer progress.close()
			sb, err := llmsandbox.Attach(cmd.Context(), args[0], llmsandbox.AttachOptions{Backend: b, Language: lang, Progress: progress.show})
			if err != nil {
				return placed(&place, err)
			}
			err = sb.Install(cmd.Context(), args[1:], &o)
			return placed(&place, errors.Join(err, sb.Close()))
		},
	}
	place.register(cmd.Flags(), "what runs the sandbox")
	cmd.Flags().StringVarP(&lang, "lang", "l", "", "language of the libraries (default: the sandbox's)")
	how.registerHow(cmd.Flags(), "timeout")
	return cmd
}
