package cli

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

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
			sb, err := llmsandbox.Attach(cmd.Context(), args[0], &llmsandbox.AttachOptions{Backend: b, Language: lang, Progress: progress.show})
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

// libraryFlags say which libraries are installed, and how.
type libraryFlags struct {
	libraries []string
	offline   bool
	from      string
	timeout   string
}

// register adds the flag that names libraries to a command that opens a sandbox; how they
// are installed is registerHow's.
func (f *libraryFlags) register(set *pflag.FlagSet) {
	set.StringArrayVar(&f.libraries, "lib", nil, "library of the language, with a version if need be, such as 'requests>=2,<3' (repeatable)")
}

func (f *libraryFlags) registerHow(set *pflag.FlagSet, timeout string) {
	set.BoolVar(&f.offline, "offline", false, "install only what is cached or in --lib-from; no network")
	set.StringVar(&f.from, "lib-from", "", "folder with wheels, tarballs or gems to install libraries from, instead of registries")
	set.StringVar(&f.timeout, timeout, "", "how long installing libraries may take, such as 5m (default 10m)")
}

func (f *libraryFlags) options() (llmsandbox.InstallOptions, error) {
	o := llmsandbox.InstallOptions{Offline: f.offline}
	d, err := timeoutFlag(f.timeout)
	if err != nil || d < 0 {
		return o, fmt.Errorf("timeout %q of the installation: use a duration above 0 such as 5m", f.timeout)
	}
	o.Timeout = d
	if f.from != "" {
		if o.Local, err = filepath.Abs(f.from); err != nil {
			return o, fmt.Errorf("--lib-from: %w", err)
		}
	}
	return o, nil
}
