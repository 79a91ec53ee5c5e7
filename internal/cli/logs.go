package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/bytesize"
	"github.com/llmsandbox/llmsandbox/internal/termsafe"
)

func newLogsCommand() *cobra.Command {
	var p place
	var follow bool
	cmd := &cobra.Command{
		Use:   "logs [flags] ID [PROCESS]",
		Short: "Print the output of a process in a sandbox",
		Long: `Print what a process in a sandbox has written to standard output and standard error. The command
or program that started it is not affected. If the sandbox has several processes, name one by its
number; without PROCESS, they are listed in an error.

The sandbox keeps what was not read yet, up to 1 MiB of each stream, and at least the last 64 KiB.
When a process has ended and its result was delivered, its output is gone.`,
		Example: `  llmsandbox logs "$id"
  llmsandbox logs --follow "$id" 3`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return onSandbox(cmd.Context(), &p, args[0], func(sb *llmsandbox.Sandbox) error {
				id, err := processOf(cmd.Context(), sb, args[1:])
				if err != nil {
					return err
				}
				return printLogs(cmd.Context(), sb, id, follow)
			})
		},
	}
	p.register(cmd.Flags())
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "print new output until the process ends")
	return cmd
}

// processOf is the process that an argument names, or the only one there is.
func processOf(ctx context.Context, sb *llmsandbox.Sandbox, args []string) (uint64, error) {
	processes, err := sb.Processes(ctx)
	if err != nil {
		return 0, err
	}
	what := fmt.Sprintf("sandbox %s has %d processes; name one of them", sb.ID(), len(processes))
	if len(args) > 0 {
		for _, p := range processes {
			if strconv.FormatUint(p.ID, 10) == args[0] {
				return p.ID, nil
			}
		}
		what = fmt.Sprintf("sandbox %s has no process %q", sb.ID(), args[0])
	}
	switch {
	case len(processes) == 0:
		return 0, fmt.Errorf("sandbox %s has no process whose output is kept: none runs, and the results of those that ended were delivered", sb.ID())
	case len(processes) == 1 && len(args) == 0:
		return processes[0].ID, nil
	}
	var list strings.Builder
	w := newTable(&list)
	fmt.Fprint(w, "PROCESS\tSTATE\tAGE\tCOMMAND")
	for _, p := range processes {
		state := "ended"
		if p.Running {
			state = "running"
		}
		fmt.Fprintf(w, "\n%d\t%s\t%s\t%s", p.ID, state, time.Since(p.Started).Round(time.Second), commandLine(p.Argv))
	}
	_ = w.Flush() // to memory
	return 0, fmt.Errorf("%s:\n%s", what, list.String())
}

// maxCommandLine bounds how much of a program's arguments a list shows, in characters.
const maxCommandLine = 60

func commandLine(argv []string) string {
	line := []rune(termsafe.String(strings.Join(strings.Fields(strings.Join(argv, " ")), " ")))
	if len(line) > maxCommandLine {
		line = append(line[:maxCommandLine-1], '…')
	}
	return string(line)
}

func printLogs(ctx context.Context, sb *llmsandbox.Sandbox, process uint64, follow bool) error {
	ctx, gone := context.WithCancelCause(ctx)
	defer gone(nil)
	stdout, doneOut := programOutput(os.Stdout, false, gone)
	defer doneOut()
	errs, doneErr := programOutput(os.Stderr, false, gone)
	defer doneErr()
	for chunk, err := range sb.Logs(ctx, process, &llmsandbox.LogsOptions{Follow: follow}) {
		if interrupted, ok := errors.AsType[signalError](context.Cause(ctx)); ok {
			return exitCode(interrupted.exitCode()) // nothing was started that would be ended with this
		}
		if err != nil {
			return errors.Join(err, outputEnded(ctx))
		}
		var w io.Writer = stdout
		name := "standard output"
		if chunk.Stderr {
			w, name = errs, "standard error"
		}
		if chunk.Lost > 0 {
			stderr.note(fmt.Sprintf("llmsandbox: %s of %s before this are no longer kept", bytesize.Format(chunk.Lost), name))
		}
		if _, err := w.Write(chunk.Data); err != nil {
			return err
		}
	}
	return nil
}
