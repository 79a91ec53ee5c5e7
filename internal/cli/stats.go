package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/bytesize"
)

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
		ms := float64(u.CPU.Microseconds()) / 1000
		s.CPUMS = &ms
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
