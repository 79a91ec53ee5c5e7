package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/bytesize"
	"github.com/llmsandbox/llmsandbox/internal/termsafe"
	"github.com/llmsandbox/llmsandbox/internal/warm"
)

func newCopyCommand() *cobra.Command {
	var place place
	return place.on(&cobra.Command{
		Use:   "cp SOURCE DESTINATION",
		Short: "Copy files into or out of a sandbox",
		Long: `Copy a file or directory into or out of a sandbox made by create or run --keep. One of the
two arguments is ID:PATH. The other can be - for standard input or output. Links and special
files are skipped. Of the permissions, only read, write and execute are kept.`,
		Example: `  llmsandbox cp data.csv sb-1234:/sandbox/data.csv
  llmsandbox cp sb-1234:/sandbox/out ./results
  llmsandbox cp sb-1234:result.csv - | head`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			fromID, from, fromInside := insidePath(args[0])
			toID, to, toInside := insidePath(args[1])
			if fromInside == toInside {
				return errors.New("cp: exactly one of source and destination is ID:PATH")
			}
			return onSandbox(cmd.Context(), &place, fromID+toID, func(sb *llmsandbox.Sandbox) error {
				move := sb.CopyIn
				switch {
				case fromInside && to == "-":
					return printFile(cmd.Context(), sb, from)
				case toInside && from == "-":
					return sb.WriteFileFrom(cmd.Context(), to, os.Stdin, 0)
				case fromInside:
					if err := checkDestination(to); err != nil {
						return fmt.Errorf("cp: %w", err)
					}
					move = sb.CopyOut
				}
				moved := stderr.begin("Copying " + from)
				copied, err := move(cmd.Context(), from, to)
				moved()
				printSkipped(copied)
				return err
			})
		},
	})
}

// printFile writes a file of a sandbox to standard output.
func printFile(ctx context.Context, sb *llmsandbox.Sandbox, path string) error {
	ctx, gone := context.WithCancelCause(ctx)
	defer gone(nil)
	out, done := programOutput(os.Stdout, false, gone)
	defer done()
	_, err := sb.ReadFileTo(ctx, path, out)
	return errors.Join(err, outputEnded(ctx))
}

// printSkipped says what a copy left out.
func printSkipped(r llmsandbox.CopyResult) {
	for _, s := range r.Skipped {
		stderr.note("llmsandbox: left out " + termsafe.String(s))
	}
}

// insidePath cuts ID:PATH. What has a slash before the colon is a path of the host.
func insidePath(arg string) (id, path string, inside bool) {
	id, path, ok := strings.Cut(arg, ":")
	if !ok || id == "" || strings.ContainsAny(id, `/\.`) {
		return "", arg, false
	}
	path = cmp.Or(path, ".")
	return id, path, true
}

func newRemoveCommand() *cobra.Command {
	var place place
	return place.on(&cobra.Command{
		Use:     "rm ID...",
		Aliases: []string{"remove"},
		Short:   "End and remove sandboxes",
		Example: `  llmsandbox rm sb-1234
  llmsandbox rm $(llmsandbox ls --quiet)`,
		Args: cobra.MinimumNArgs(1),
		RunE: each(func(ctx context.Context, id string) error {
			defer stderr.begin("Removing " + id)()
			sb, err := attach(ctx, &place, id)
			if err != nil {
				return err
			}
			return sb.Destroy(ctx)
		}),
	})
}

func newListCommand() *cobra.Command {
	return newPlacedList(&cobra.Command{
		Use:     "ls",
		Aliases: []string{"list", "ps"},
		Short:   "List running sandboxes",
		Example: `  llmsandbox ls
  llmsandbox ls --json`,
	}, "IDs", llmsandbox.List, func(i backend.Info) string { return i.ID }, printTable)
}

func printTable(infos []backend.Info) error {
	w := newTable(os.Stdout)
	fmt.Fprintln(w, "ID\tLANGUAGE\tIMAGE\tAGE\tENDS IN\tKEPT\tOWNER")
	for _, i := range infos {
		ends := "-"
		if !i.Deadline.IsZero() {
			ends = time.Until(i.Deadline).Round(time.Second).String()
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", i.ID, i.Language, i.Image, time.Since(i.Created).Round(time.Second), ends, kept(i), i.Owner)
	}
	return w.Flush()
}

// kept is what table says of whether a sandbox is to stay.
func kept(i backend.Info) string {
	if warm.Waits(i.Labels[warm.Label], i.ID) {
		return "warm"
	}
	return yesNo(i.Labels[keptLabel] == "true")
}

func newGCCommand() *cobra.Command {
	var place place
	return place.on(&cobra.Command{
		Use:   "gc",
		Short: "Clean up after crashed sandboxes",
		Long: `Remove what sandboxes leave behind if their owner is killed: state directories, cgroups and
partial files, containers and volumes, or pods. Opening a sandbox does the same. Running
sandboxes are not affected.`,
		Example: `  llmsandbox gc`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			b, err := place.open()
			if err != nil {
				return err
			}
			found := stderr.begin("Looking for leftovers")
			left, err := llmsandbox.GC(cmd.Context(), b)
			found()
			failed := 0
			for _, l := range left {
				if l.Removed {
					fmt.Printf("removed %s %s\n", l.Kind, l.Name)
					continue
				}
				failed++
				fmt.Printf("could not remove %s %s: %s\n", l.Kind, l.Name, l.Reason)
			}
			if err == nil && failed > 0 {
				err = exitCode(exitOurFailure)
			}
			return placed(&place, err)
		},
	})
}

// newList has a command print what list returns: as a table, by its ids, which the flag calls
// ids, or as a JSON array.
func newList[T any](cmd *cobra.Command, ids string, list func(context.Context) ([]T, error), id func(T) string, table func([]T) error) *cobra.Command {
	var quiet, asJSON bool
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		items, err := list(cmd.Context())
		switch {
		case err != nil:
			return err
		case asJSON && items == nil:
			return printJSON([]T{})
		case asJSON:
			return printJSON(items)
		case !quiet:
			return table(items)
		}
		for _, item := range items {
			fmt.Println(id(item))
		}
		return nil
	}
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "print only "+ids)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	setOnlyHere(cmd.Flags(), "quiet") // of a list it is another thing than of run
	return cmd
}

// newPlacedList is newList of what a backend has.
func newPlacedList[T any](cmd *cobra.Command, ids string, list func(context.Context, backend.Backend) ([]T, error), id func(T) string, table func([]T) error) *cobra.Command {
	var p place
	return p.on(newList(cmd, ids, func(ctx context.Context) ([]T, error) {
		b, err := p.open()
		if err != nil {
			return nil, err
		}
		items, err := list(ctx, b)
		return items, placed(&p, err)
	}, id, table))
}

// each does one thing with each argument, and goes on after an error.
func each(do func(ctx context.Context, arg string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		var errs []error
		for _, arg := range args {
			errs = append(errs, do(cmd.Context(), arg))
		}
		return errors.Join(errs...)
	}
}

// noDeadline is the argument, and the answer, of a sandbox that does not end by itself.
const noDeadline = "none"

func newDeadlineCommand() *cobra.Command {
	var p place
	return p.on(&cobra.Command{
		Use:   "deadline [flags] ID [DURATION|none]",
		Short: "Show or change when a sandbox ends",
		Long: `Set the time from now after which a sandbox ends, even if a program is running in it. This
replaces its --ttl. With 'none', the sandbox has no deadline. Without DURATION, print it.`,
		Example: `  llmsandbox deadline "$id" 2h
  llmsandbox deadline "$id" none
  llmsandbox deadline "$id"`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			var at time.Time
			if len(args) == 2 && args[1] != noDeadline {
				d, err := parseDuration(args[1])
				if err != nil || d <= 0 {
					return fmt.Errorf("deadline %q: use a duration such as 30m or 1d, or '%s'", args[1], noDeadline)
				}
				at = time.Now().Add(d)
			}
			return onSandbox(cmd.Context(), &p, args[0], func(sb *llmsandbox.Sandbox) error {
				if len(args) == 2 {
					return sb.SetDeadline(cmd.Context(), at)
				}
				ends := noDeadline
				if at, set := sb.Deadline(); set {
					ends = at.Local().Format(time.RFC3339)
				}
				fmt.Println(ends)
				return nil
			})
		},
	})
}

func newStatsCommand() *cobra.Command {
	var place place
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "stats [flags] [ID...]",
		Short: "Show the CPU time and memory of sandboxes",
		Long: `Show CPU time, current memory and peak memory of running sandboxes. Without IDs, show all
sandboxes of the backend. Values that the backend does not know are '-' in the table and
absent from the JSON.`,
		Example: `  llmsandbox stats
  llmsandbox stats --json "$id"`,
		RunE: func(cmd *cobra.Command, ids []string) error {
			all := len(ids) == 0
			if all {
				b, err := place.open()
				if err != nil {
					return err
				}
				infos, err := llmsandbox.List(cmd.Context(), b)
				if err != nil {
					return placed(&place, err)
				}
				for _, i := range infos {
					ids = append(ids, i.ID)
				}
			}
			rows, err := measure(ids, all, func(id string) (backend.Usage, error) { return usageOf(cmd.Context(), &place, id) })
			if len(rows) == 0 && err != nil {
				return err
			}
			if asJSON {
				return errors.Join(printJSON(rows), err)
			}
			return errors.Join(printStats(os.Stdout, rows), err)
		},
	}
	place.register(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	return cmd
}

// usageOf asks a sandbox for what it uses.
func usageOf(ctx context.Context, p *place, id string) (u backend.Usage, err error) {
	err = onSandbox(ctx, p, id, func(sb *llmsandbox.Sandbox) error {
		u, err = sb.Usage(ctx)
		return err
	})
	return u, err
}

// stats is a row of the table, and an element of the JSON array. A nil pointer is not known.
type stats struct {
	ID         string   `json:"id"`
	CPUMS      *float64 `json:"cpu_ms,omitempty"`
	Memory     *int64   `json:"memory_bytes,omitempty"`
	PeakMemory *int64   `json:"peak_memory_bytes,omitempty"`
}

func statsOf(id string, u backend.Usage) stats {
	s := stats{ID: id}
	if u.CPUKnown {
		s.CPUMS = new(float64(u.CPU.Microseconds()) / 1000)
	}
	if u.MemoryKnown {
		s.Memory = &u.Memory
	}
	if u.MemoryPeak > 0 {
		s.PeakMemory = &u.MemoryPeak
	}
	return s
}

// measure asks each sandbox, and goes on after an error. If the IDs are from a list, it leaves out sandboxes
// that have ended since.
func measure(ids []string, listed bool, ask func(id string) (backend.Usage, error)) ([]stats, error) {
	rows := []stats{}
	var errs []error
	for _, id := range ids {
		u, err := ask(id)
		switch {
		case err == nil:
			rows = append(rows, statsOf(id, u))
		case !listed || !errors.Is(err, llmsandbox.ErrNotFound) && !errors.Is(err, llmsandbox.ErrClosed):
			errs = append(errs, err)
		}
	}
	return rows, errors.Join(errs...)
}

func printStats(out io.Writer, rows []stats) error {
	w := newTable(out)
	fmt.Fprintln(w, "ID\tCPU TIME\tMEMORY\tPEAK MEMORY")
	for _, r := range rows {
		cpu := "-"
		if r.CPUMS != nil {
			cpu = time.Duration(*r.CPUMS * float64(time.Millisecond)).Round(time.Millisecond).String()
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", r.ID, cpu, sizeOrDash(r.Memory), sizeOrDash(r.PeakMemory))
	}
	return w.Flush()
}

func sizeOrDash(n *int64) string {
	if n == nil {
		return "-"
	}
	return bytesize.Format(*n)
}
