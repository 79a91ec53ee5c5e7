package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/bytesize"
	"github.com/llmsandbox/llmsandbox/internal/environments"
)

// setupFlags are the flags of `setup`.
type setupFlags struct {
	place        place
	image        string
	libraries    libraryFlags
	requirements string
	from         string
}

func newSetupCommand() *cobra.Command {
	var f setupFlags
	cmd := &cobra.Command{
		Use:   "setup [flags] [NAME]",
		Short: "Install a Python environment, such as data-science",
		Long: `Install an environment: a named set of Python packages in exact versions, the same on every
machine. Sandboxes opened with --environment NAME have these packages, and not the ones of
the machine or the image.

Without NAME, setup installs data-science, which is built in: NumPy, pandas, SciPy,
scikit-learn, Matplotlib, seaborn, Plotly, Requests, openpyxl, Pillow and SymPy.

With --lib or --requirements, setup finds the newest versions that fit, writes a lock file
and installs them. Run it again to update the lock file. To use the same versions on another
machine, copy the lock file there and run setup with --from.`,
		Example: `  llmsandbox setup
  llmsandbox setup web --lib requests --lib 'beautifulsoup4>=4.12'
  llmsandbox setup report --requirements requirements.txt
  llmsandbox setup report --from report.toml
  llmsandbox setup --backend docker --image python:3.13-slim`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := environments.Default
			if len(args) == 1 {
				name = args[0]
			}
			return placed(&f.place, f.run(cmd.Context(), name))
		},
	}
	set := cmd.Flags()
	f.libraries.register(set)
	set.StringVar(&f.requirements, "requirements", "", "read the libraries from `FILE`, one per line, in the format of pip")
	set.StringVar(&f.from, "from", "", "install this lock `FILE` as NAME")
	set.StringVar(&f.image, "image", "", "install the environment for this `IMAGE` (default: Python of this machine or default image)")
	f.place.register(set)
	f.libraries.registerHow(set, "timeout")
	stderr.register(set)
	cmd.AddCommand(newAppArmorCommand())
	return cmd
}

func (f *setupFlags) run(ctx context.Context, name string) error {
	o := llmsandbox.Options{Image: f.image, Environment: name}
	var err error
	if o.Install, err = f.libraries.options(); err != nil {
		return err
	}
	if err := f.place.check(f.image, false); err != nil {
		return err
	}
	if o.Backend, err = f.place.open(); err != nil {
		return err
	}
	o.Progress = stderr.show
	installed := stderr.begin("Setting up environment " + name)
	if err := f.lock(ctx, name, o); err != nil {
		return err
	}
	sb, err := llmsandbox.Open(ctx, &o)
	if err != nil {
		return err
	}
	if err := sb.Close(); err != nil {
		return fmt.Errorf("close the sandbox: %w", err)
	}
	list, err := llmsandbox.Environments(ctx, &o)
	installed()
	if err != nil {
		return err
	}
	for _, e := range list {
		fmt.Printf("Environment %s is installed: %s.\n", e.Name, bytesize.Format(e.Size))
		if e.Path != "" {
			fmt.Printf("Its lock is %s.\n", e.Path)
		}
		fmt.Printf("Use it with: llmsandbox run --environment %s FILE\n", name)
	}
	return nil
}

// lock writes the lock of an own environment, if a flag says what is in it.
func (f *setupFlags) lock(ctx context.Context, name string, o llmsandbox.Options) error {
	libraries := f.libraries.libraries
	if f.requirements != "" {
		more, err := readRequirements(f.requirements)
		if err != nil {
			return fmt.Errorf("--requirements: %w", err)
		}
		libraries = append(libraries, more...)
	}
	switch {
	case f.from == "" && len(libraries) == 0:
		return nil
	case f.from != "" && len(libraries) > 0:
		return errors.New("--from takes no further libraries: leave out --lib and --requirements, or --from")
	case environments.IsPath(name):
		return fmt.Errorf("environment %s: %w: give it a name; llmsandbox environments show NAME prints its lock", name, llmsandbox.ErrInvalid)
	case name == environments.Default:
		return fmt.Errorf("environment %s is built in and cannot be changed: give yours another name, as in: llmsandbox setup my-%s --lib LIBRARY", name, name)
	}
	if err := environments.CheckName(name); err != nil {
		return err
	}
	lock, err := f.makeLock(ctx, libraries, o)
	if err != nil {
		return err
	}
	_, err = environments.Save(name, lock)
	return err
}

func (f *setupFlags) makeLock(ctx context.Context, libraries []string, o llmsandbox.Options) (environments.Lock, error) {
	if f.from != "" {
		lock, err := environments.Read(f.from)
		if err != nil {
			err = fmt.Errorf("--from: %w", err)
		}
		return lock, err
	}
	text, err := llmsandbox.LockEnvironment(ctx, libraries, &o)
	if err != nil {
		return environments.Lock{}, err
	}
	return environments.Parse(text)
}

// readRequirements reads the libraries of a file as pip's: one on a line, with comments. It fails
// for what only pip itself could follow.
func readRequirements(name string) (list []string, err error) {
	err = eachLine(name, func(line string) error {
		if i := strings.Index(" "+line, " #"); i >= 0 {
			line = line[:i]
		}
		line = strings.Join(strings.Fields(line), "")
		switch {
		case line == "":
			return nil
		case strings.ContainsAny(line, `;\@`) || line[0] == '-':
			return errors.New("options, markers, hashes and addresses are not supported: use lines such as pandas>=2")
		}
		list = append(list, line)
		return nil
	})
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("%s names no library", name)
	}
	return list, err
}

func newEnvironmentsCommand() *cobra.Command {
	return parent(&cobra.Command{
		Use:   "environments",
		Short: "List, show and remove Python environments",
		Long: `List, show and remove environments: named sets of Python packages in exact versions.
Create and install them with llmsandbox setup, and use them with --environment.`,
		Example: `  llmsandbox environments ls
  llmsandbox environments show data-science
  llmsandbox environments rm web`,
	}, newEnvironmentsListCommand(), newEnvironmentsShowCommand(), newEnvironmentsRemoveCommand())
}

func newEnvironmentsListCommand() *cobra.Command {
	var image string
	cmd := newPlacedList(&cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List environments and whether they are installed",
		Example: `  llmsandbox environments ls
  llmsandbox environments ls --backend docker --json`,
	}, "names", func(ctx context.Context, b backend.Backend) ([]llmsandbox.EnvironmentInfo, error) {
		return llmsandbox.Environments(ctx, &llmsandbox.Options{Backend: b, Image: image})
	}, func(e llmsandbox.EnvironmentInfo) string { return e.Name }, printEnvironments)
	cmd.Flags().StringVar(&image, "image", "", "look for environments installed for this `IMAGE`")
	return cmd
}

func printEnvironments(list []llmsandbox.EnvironmentInfo) error {
	w := newTable(os.Stdout)
	fmt.Fprintln(w, "NAME\tLANGUAGE\tINSTALLED\tSIZE\tLIBRARIES")
	for _, e := range list {
		size := "-"
		if e.Installed {
			size = bytesize.Format(e.Size)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", e.Name, e.Language, yesNo(e.Installed), size, strings.Join(e.Libraries, " "))
	}
	return w.Flush()
}

func newEnvironmentsShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show NAME",
		Short: "Print the lock file of an environment",
		Example: `  llmsandbox environments show data-science
  llmsandbox environments show web >web.toml`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			lock, err := environments.Find(args[0])
			if err != nil {
				return err
			}
			text, err := lock.Encode()
			if err != nil {
				return err
			}
			_, err = os.Stdout.Write(text)
			return err
		},
	}
}

func newEnvironmentsRemoveCommand() *cobra.Command {
	var place place
	return place.on(&cobra.Command{
		Use:   "rm NAME",
		Short: "Remove an environment and its packages",
		Long: `Remove the lock file of an environment and its packages on the backend. Packages in use are
kept. The environment data-science is built in: only its packages are removed.`,
		Example: `  llmsandbox environments rm web`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := args[0]
			if err := environments.CheckName(name); err != nil {
				return err
			}
			kept, layers, err := place.listLayers(cmd.Context())
			if err != nil {
				return err
			}
			removed := 0
			for _, l := range layers {
				if l.Environment != name {
					continue
				}
				if err := kept.Remove(cmd.Context(), l.Key); err != nil && !errors.Is(err, backend.ErrLayerNotFound) {
					return placed(&place, err)
				}
				removed++
			}
			if name == environments.Default {
				return nil
			}
			if err := environments.Remove(name); err != nil && !(removed > 0 && errors.Is(err, llmsandbox.ErrEnvironmentNotFound)) {
				return err
			}
			return nil
		},
	})
}
