package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/llmsandbox/llmsandbox"
)

// report says how a run ended and turns it into the command's exit code.
func (f *runFlags) report(res *llmsandbox.Result, err error) error {
	if readerGone(err) {
		return err
	}
	if res == nil || err != nil && !errors.Is(err, llmsandbox.ErrOutput) && res.ExitCode == nil {
		if f.json && res != nil {
			return f.printJSON(res, exitOurFailure)
		}
		return f.fail(err)
	}
	if err != nil {
		printError(os.Stderr, err)
	}
	code := codeOf(res)
	if err != nil && code == 0 {
		code = exitOurFailure
	}
	if f.json {
		return f.printJSON(res, code)
	}
	tellFindings(os.Stderr, res.Findings, f.lines)
	printRefused(os.Stderr, res.Network)
	if res.Reason != "" {
		fmt.Fprintf(os.Stderr, "llmsandbox: %s: %s\n", paint(os.Stderr, red, string(res.Status)), res.Reason)
	} else if res.Signal != "" {
		fmt.Fprintf(os.Stderr, "llmsandbox: %s: the program was ended by %s\n", paint(os.Stderr, red, string(res.Status)), res.Signal)
	}
	return exitCode(code)
}

// fail reports a run that did not come to be.
func (f *runFlags) fail(err error) error {
	if !f.json {
		return err
	}
	return f.printJSON(&llmsandbox.Result{Status: llmsandbox.StatusSetupFailed, Backend: f.place.Backend, Language: f.lang, Reason: err.Error()}, exitOurFailure)
}

func (f *runFlags) printJSON(res *llmsandbox.Result, code int) error {
	if err := writeResult(os.Stdout, *res, f.textError); err != nil {
		return err
	}
	return exitCode(code)
}

func printJSON(v any) error { return encodeJSON(os.Stdout, v) }

func encodeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
