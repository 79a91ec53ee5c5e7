package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/llmsandbox/llmsandbox/mcp"
)

// mcpStop is how long sandboxes may take to go when the server ends.
const mcpStop = 20 * time.Second

func newMCPCommand() *cobra.Command {
	var f mcpFlags
	cmd := &cobra.Command{
		Use:   "mcp [flags]",
		Short: "Serve sandboxes to agents by the Model Context Protocol",
		Long: `Serve tools that run code in sandboxes, by the Model Context Protocol, to the client
that starts this command, over its standard input and output; or with --http to those
who have a token. What sandboxes may do is set here, and no argument of a tool widens it.

The server ends when its client leaves or by SIGINT or SIGTERM, and leaves nothing behind.
It also reads the variables of docs/mcp.md; a flag wins over its variable.`,
		Example: `  llmsandbox mcp
  llmsandbox mcp --memory 1g --timeout 2m --network allow=example.org --policy production
  llmsandbox mcp --backend docker --warm-language python --warm-language javascript
  llmsandbox mcp --http 127.0.0.1:8765 --token-file token`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := f.serve(cmd.Context(), cmd.Flags())
			if cmd.Context().Err() != nil && errors.Is(err, context.Canceled) {
				return nil // it was asked to end, and has
			}
			return placed(&f.place, err)
		},
	}
	f.register(cmd.Flags())
	return cmd
}

// takeStdout keeps standard output for the protocol: whatever else would print goes to
// standard error.
func takeStdout() io.WriteCloser {
	out := os.Stdout
	os.Stdout = os.Stderr
	return out
}

func (f *mcpFlags) serve(ctx context.Context, set flagSet) error {
	out := takeStdout()
	var level slog.Level
	if err := level.UnmarshalText([]byte(f.log)); err != nil {
		return fmt.Errorf("--log %q: use debug, info, warn or error", f.log)
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	http, err := f.http.options()
	if err != nil {
		return err
	}
	cfg, err := f.config(set, log)
	if err != nil {
		return err
	}
	server, err := mcp.New(cfg)
	if err != nil {
		return err
	}
	if f.http.address == "" {
		err = server.RunStdio(ctx, os.Stdin, out)
	} else {
		err = f.http.serve(ctx, server, http)
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), mcpStop)
	defer cancel()
	return errors.Join(err, server.Close(stop))
}
