package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/llmsandbox/llmsandbox"
)

const superviseCommand = "supervise"

// newSuperviseCommand is the process that holds one kept sandbox. It is started by
// `create` and `run --keep`, never by hand.
func newSuperviseCommand() *cobra.Command {
	return &cobra.Command{
		Use:    superviseCommand,
		Short:  "Hold one kept sandbox (started by create and run --keep)",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			sb, err := openOrdered(cmd.Context())
			if err != nil {
				answerWith(answer{Error: err.Error(), Kind: kindOf(err)})
				return exitCode(exitOurFailure)
			}
			// The terminal that started us may go: its hang-up is not for us.
			signal.Ignore(syscall.SIGHUP)
			answerWith(answer{ID: sb.ID()})
			if err := letGo(); err != nil {
				return errors.Join(err, sb.Close())
			}
			select {
			case <-sb.Done():
			case <-cmd.Context().Done():
			}
			return sb.Close()
		},
	}
}

func openOrdered(ctx context.Context) (*llmsandbox.Sandbox, error) {
	var o order
	if err := json.NewDecoder(os.Stdin).Decode(&o); err != nil {
		return nil, fmt.Errorf("read the order: %w", err)
	}
	b, err := o.Place.open()
	if err != nil {
		return nil, err
	}
	progress := &progressShower{}
	defer progress.close()
	return llmsandbox.Open(ctx, llmsandbox.Options{
		Language: o.Options.Language, Image: o.Options.Image, Backend: b, Limits: o.Options.Limits,
		BestEffort: o.Options.BestEffort, Env: o.Options.Env, Labels: o.Options.Labels,
		Lifetime: o.Options.Lifetime, Progress: progress.show,
		Libraries: o.Options.Libraries, Install: o.Options.Install,
		Network: llmsandbox.Network{Mode: o.Options.Mode, Allow: o.Options.Allow}, Secrets: o.Options.Secrets,
	})
}

func answerWith(a answer) {
	// The process that asked may be gone, and needs no answer then.
	_ = json.NewEncoder(os.Stdout).Encode(a)
}

// letGo gives up the standard streams, so that who waits for their end (a shell's
// command substitution) does not wait for us, and the folder we were started in, which
// was needed for the files that the order names.
func letGo() error {
	if err := os.Chdir(string(filepath.Separator)); err != nil {
		return err
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	for fd := range 3 {
		if err := replaceDescriptor(int(null.Fd()), fd); err != nil {
			return err
		}
	}
	return nil
}

// kinds are the sentinels that keep their meaning on the way from a supervisor.
var kinds = map[string]error{
	"not_enforced": llmsandbox.ErrNotEnforced, "unsupported": llmsandbox.ErrUnsupported,
	"image_not_found": llmsandbox.ErrImageNotFound, "image_invalid": llmsandbox.ErrImageInvalid,
	"unknown_language": llmsandbox.ErrUnknownLanguage, "toolchain": llmsandbox.ErrToolchain, "invalid": llmsandbox.ErrInvalid,
}

func kindOf(err error) string {
	for kind, sentinel := range kinds {
		if errors.Is(err, sentinel) {
			return kind
		}
	}
	return ""
}

// A remoteError is a supervisor's failure.
type remoteError struct{ answer }

func (e *remoteError) Error() string { return e.answer.Error }
func (e *remoteError) Unwrap() error { return kinds[e.Kind] }
