package cli

import (
	"cmp"
	"context"
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
	return parent(&cobra.Command{
		Use:   "cache",
		Short: "List and remove cached libraries",
		Long: `List and remove cached layers. A layer holds a list of installed libraries, a package that
lists share, or a prepared toolchain cache such as Go's compiled standard library. A sandbox
that needs the same libraries uses the layer and installs nothing. A layer in use is never
removed. What a list shares with packages takes its space once and is counted twice.`,
		Example: `  llmsandbox cache ls
  llmsandbox cache prune --unused 7d --max-size 2g`,
	}, newCacheListCommand(), newCacheRemoveCommand(), newCachePruneCommand())
}

func (p *place) layers() (backend.Layers, error) {
	b, err := p.open()
	if err != nil {
		return nil, err
	}
	return b.Layers()
}

// listLayers returns the layers with what keeps them.
func (p *place) listLayers(ctx context.Context) (kept backend.Layers, layers []backend.LayerInfo, err error) {
	if kept, err = p.layers(); err == nil {
		layers, err = kept.List(ctx)
		err = placed(p, err)
	}
	return kept, layers, err
}

func newCacheListCommand() *cobra.Command {
	return newPlacedList(&cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List cached layers",
		Example: `  llmsandbox cache ls
  llmsandbox cache ls --backend docker --json`,
	}, "keys", func(ctx context.Context, b backend.Backend) ([]backend.LayerInfo, error) {
		kept, err := b.Layers()
		if err != nil {
			return nil, err
		}
		return kept.List(ctx)
	}, func(l backend.LayerInfo) string { return l.Key }, printLayers)
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
	if l.Package {
		return strings.Join(l.Libraries, " ") + " (package)"
	}
	text := strings.Join(l.Libraries, " ")
	if len(text) > most {
		text = fmt.Sprintf("%s... (%d)", text[:most], len(l.Libraries))
	}
	return cmp.Or(text, l.Cache+" (cache)")
}

func newCacheRemoveCommand() *cobra.Command {
	var place place
	return place.on(&cobra.Command{
		Use:     "rm KEY...",
		Short:   "Remove cached layers that no sandbox uses",
		Example: `  llmsandbox cache rm $(llmsandbox cache ls -q)`,
		Args:    cobra.MinimumNArgs(1),
		RunE: each(func(ctx context.Context, key string) error {
			kept, err := place.layers()
			if err == nil {
				err = placed(&place, kept.Remove(ctx, key))
			}
			if err == nil {
				fmt.Println("removed", key)
			}
			return err
		}),
	})
}

func newCachePruneCommand() *cobra.Command {
	var place place
	var unused, size string
	var all bool
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Remove old cached layers",
		Long: `Remove layers that no sandbox has used for some time, and then the least recently used ones
until the rest fits into --max-size. Where an engine does not record the last use, the age of
a layer counts. A layer in use is never removed.`,
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
			kept, layers, err := place.listLayers(cmd.Context())
			if err != nil {
				return err
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
	place.register(cmd.Flags())
	cmd.Flags().StringVar(&unused, "unused", "30d", "remove layers that were not used for this `DURATION`, such as 7d or 12h")
	cmd.Flags().StringVar(&size, "max-size", "", "then remove the least recently used layers down to this `SIZE`, such as 2g (default: any)")
	cmd.Flags().BoolVarP(&all, "all", "a", false, "remove all layers that no sandbox uses")
	setOnlyHere(cmd.Flags(), "all")
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
		Short: "Install libraries in a sandbox",
		Long: `Install libraries in a sandbox made by create or run --keep. A separate sandbox, which can
only reach the package registries, downloads and installs them. Cached libraries need no
network. Name libraries as their package manager does: requests>=2,<3 or numpy[extra],
@types/node@20, org.apache.commons:commons-lang3:3.14.0, golang.org/x/text@v0.14.0,
data.table, nokogiri:1.15.0, libssl-dev.`,
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
	place.register(cmd.Flags())
	cmd.Flags().StringVarP(&lang, "lang", "l", "", "`LANGUAGE` of the libraries (default: the language of the sandbox)")
	registerLanguageFile(cmd.Flags(), new([]string))
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
	set.StringArrayVar(&f.libraries, "lib", nil, "install `LIBRARY`, such as 'requests>=2,<3' (repeatable)")
}

func (f *libraryFlags) registerHow(set *pflag.FlagSet, timeout string) {
	f.timeoutFlag = timeout
	set.BoolVar(&f.offline, "offline", false, "install only from the cache or --lib-from, without a network")
	set.StringVar(&f.from, "lib-from", "", "install from wheels, tarballs or gems in `DIR`, not from registries")
	set.StringVar(&f.timeout, timeout, "", "time limit for installing libraries: `DURATION` such as 5m (default 10m)")
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
