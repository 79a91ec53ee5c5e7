package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/bytesize"
	"github.com/llmsandbox/llmsandbox/internal/termsafe"
)

func newCacheCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cache",
		Short: "List and remove layers: installed libraries and prepared caches",
		Long: `List and remove layers. Each list of libraries that was installed is kept as one, by
language, toolchain, image and list, so that the next sandbox with that list installs nothing,
and so is each cache of a toolchain that was prepared, such as Go's compiled standard library.
What a sandbox uses is never removed.`,
		Example: `  llmsandbox cache ls
  llmsandbox cache prune --unused 7d --max-size 2g`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newCacheListCommand(), newCacheRemoveCommand(), newCachePruneCommand())
	return cmd
}

func (p *place) layers() (backend.Layers, error) {
	b, err := p.open()
	if err != nil {
		return nil, err
	}
	return b.Layers()
}

func newCacheListCommand() *cobra.Command {
	var place place
	var flags listFlags
	cmd := &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List the layers",
		Example: `  llmsandbox cache ls
  llmsandbox cache ls --backend docker --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			kept, err := place.layers()
			if err != nil {
				return err
			}
			layers, err := kept.List(cmd.Context())
			if err != nil {
				return placed(&place, err)
			}
			return printList(flags, layers, func(l backend.LayerInfo) string { return l.Key }, printLayers)
		},
	}
	place.register(cmd.Flags(), "whose layers")
	flags.register(cmd.Flags(), "keys")
	return cmd
}

func printLayers(layers []backend.LayerInfo) error {
	w := newTable(os.Stdout)
	fmt.Fprintln(w, "KEY\tLANGUAGE\tCONTENT\tIMAGE\tSIZE\tCREATED\tLAST USED\tIN USE")
	var sum int64
	for _, l := range layers {
		sum += l.Size
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", l.Key, termsafe.String(l.Language), termsafe.String(content(l)),
			termsafe.String(cmp.Or(l.Image, "default")), bytesize.Format(l.Size), day(l.Created), day(l.LastUsed), yesNo(l.InUse))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Printf("%d layers, %s\n", len(layers), bytesize.Format(sum))
	return nil
}

// content is what is in a layer, in words that fit into a line of a table.
func content(l backend.LayerInfo) string {
	const most = 60
	if l.Environment != "" {
		return l.Environment + " (environment)"
	}
	text := strings.Join(l.Libraries, " ")
	if len(text) > most {
		text = fmt.Sprintf("%s... (%d)", text[:most], len(l.Libraries))
	}
	return cmp.Or(text, l.Cache+" (cache)")
}

func newCacheRemoveCommand() *cobra.Command {
	var place place
	cmd := &cobra.Command{
		Use:     "rm KEY...",
		Short:   "Remove layers; one in use stays",
		Example: `  llmsandbox cache rm $(llmsandbox cache ls -q)`,
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, keys []string) error {
			kept, err := place.layers()
			if err != nil {
				return err
			}
			for _, key := range keys {
				if err := kept.Remove(cmd.Context(), key); err != nil {
					return placed(&place, err)
				}
				fmt.Println("removed", key)
			}
			return nil
		},
	}
	place.register(cmd.Flags(), "whose layers")
	return cmd
}

func newCachePruneCommand() *cobra.Command {
	var place place
	var unused, size string
	var all bool
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Remove layers that were not used for long, or are too many",
		Long: `Remove layers that no sandbox has used for some time (where an
engine does not tell: that are so old), and then those used longest ago until the rest is no
larger than --max-size. One in use stays.`,
		Example: `  llmsandbox cache prune
  llmsandbox cache prune --unused 7d --max-size 2g
  llmsandbox cache prune --all`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			age, err := parseDuration(unused)
			if err != nil || age < 0 {
				return fmt.Errorf("--unused %q: use a duration such as 7d or 12h", unused)
			}
			most, err := sizeFlag("max-size", size, 1)
			if err != nil {
				return err
			}
			if all {
				age = 0
			}
			kept, err := place.layers()
			if err != nil {
				return err
			}
			layers, err := kept.List(cmd.Context())
			if err != nil {
				return placed(&place, err)
			}
			var freed int64
			for _, l := range prunable(layers, time.Now().Add(-age), most) {
				err := kept.Remove(cmd.Context(), l.Key)
				if errors.Is(err, backend.ErrLocked) || errors.Is(err, backend.ErrLayerNotFound) {
					continue // another process was faster
				}
				if err != nil {
					return placed(&place, err)
				}
				freed += l.Size
				fmt.Println("removed", l.Key)
			}
			fmt.Printf("freed %s\n", bytesize.Format(freed))
			return nil
		},
	}
	place.register(cmd.Flags(), "whose layers")
	cmd.Flags().StringVar(&unused, "unused", "30d", "for how long a layer must not have been used, such as 7d or 12h")
	cmd.Flags().StringVar(&size, "max-size", "", "how much may be left, such as 2g (default: any)")
	cmd.Flags().BoolVarP(&all, "all", "a", false, "all that no sandbox uses now")
	return cmd
}

// prunable are the layers that were last used before a time, and of the others those used
// longest ago, as far as all are larger than most, which is no limit at 0.
func prunable(layers []backend.LayerInfo, before time.Time, most int64) []backend.LayerInfo {
	used := func(l backend.LayerInfo) time.Time {
		if l.LastUsed.IsZero() {
			return l.Created
		}
		return l.LastUsed
	}
	layers = slices.Clone(layers)
	slices.SortFunc(layers, func(a, b backend.LayerInfo) int { return used(a).Compare(used(b)) })
	var total int64
	for _, l := range layers {
		total += l.Size
	}
	var gone []backend.LayerInfo
	for _, l := range layers {
		if l.InUse || !used(l).Before(before) && (most <= 0 || total <= most) {
			continue
		}
		total -= l.Size
		gone = append(gone, l)
	}
	return gone
}

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
			sb, err := llmsandbox.Attach(cmd.Context(), args[0], &llmsandbox.AttachOptions{Backend: b, Language: lang, Progress: stderr.show})
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
	stderr.register(cmd.Flags())
	return cmd
}

// libraryFlags say which libraries are installed, and how.
type libraryFlags struct {
	libraries []string
	offline   bool
	from      string
	timeout   string
	// timeoutFlag is the name of the flag that sets timeout.
	timeoutFlag string
}

// register adds the flag that names libraries to a command that opens a sandbox; how they
// are installed is registerHow's.
func (f *libraryFlags) register(set *pflag.FlagSet) {
	set.StringArrayVar(&f.libraries, "lib", nil, "library of the language, with a version if need be, such as 'requests>=2,<3' (repeatable)")
}

func (f *libraryFlags) registerHow(set *pflag.FlagSet, timeout string) {
	f.timeoutFlag = timeout
	set.BoolVar(&f.offline, "offline", false, "install only what is cached or in --lib-from; no network")
	set.StringVar(&f.from, "lib-from", "", "directory with wheels, tarballs or gems to install libraries from, instead of registries")
	set.StringVar(&f.timeout, timeout, "", "how long installing libraries may take, such as 5m (default 10m)")
}

func (f *libraryFlags) options() (llmsandbox.InstallOptions, error) {
	o := llmsandbox.InstallOptions{Offline: f.offline}
	var err error
	if o.Timeout, err = durationFlag(f.timeoutFlag, f.timeout); err != nil {
		return o, err
	}
	if f.from != "" {
		if o.Local, err = filepath.Abs(f.from); err != nil {
			return o, fmt.Errorf("--lib-from: %w", err)
		}
	}
	return o, nil
}
