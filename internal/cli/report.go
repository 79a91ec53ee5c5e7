package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend/engine/settings"
	"github.com/llmsandbox/llmsandbox/internal/exitcode"
	"github.com/llmsandbox/llmsandbox/internal/plainjson"
	"github.com/llmsandbox/llmsandbox/internal/service/store"
	"github.com/llmsandbox/llmsandbox/internal/termsafe"
)

// report says how a run ended and turns it into the command's exit code.
func (f *runFlags) report(ctx context.Context, res *llmsandbox.Result, err error) error {
	if readerGone(err) {
		return err
	}
	if res == nil || err != nil && !errors.Is(err, llmsandbox.ErrOutput) && res.ExitCode == -1 {
		if f.json && res != nil {
			res.Reason = cmp.Or(res.Reason, err.Error())
			return f.printJSON(res, errorCode(ctx, err))
		}
		return err
	}
	if err != nil {
		printError(stderr, err)
	}
	code := codeOf(res)
	if err != nil && code == 0 {
		code = exitOurFailure
	}
	if f.json {
		return f.printJSON(res, code)
	}
	if !stderr.quiet || res.Status == llmsandbox.StatusRefused {
		tellFindings(stderr, res.Findings, f.lines)
	}
	if !stderr.quiet {
		printRefused(stderr, res.Network)
	}
	if res.Reason != "" {
		fmt.Fprintf(stderr, "llmsandbox: %s: %s\n", paint(stderr, red, string(res.Status)), res.Reason)
	} else if res.Signal != "" {
		fmt.Fprintf(stderr, "llmsandbox: %s: the program was ended by %s\n", paint(stderr, red, string(res.Status)), res.Signal)
	}
	f.hints.print(stderr, res.Hints)
	return exitCode(code)
}

// fail reports with --json why there is no result. err may be nil, or have been reported.
func (f *runFlags) fail(ctx context.Context, err error) error {
	var reported exitCode
	if !f.json || err == nil || errors.As(err, &reported) || readerGone(err) || errors.Is(err, errNotText) {
		return err
	}
	return f.printJSON(&llmsandbox.Result{Status: llmsandbox.StatusSetupFailed, ExitCode: -1, Backend: f.place.Backend, Language: f.lang, Reason: err.Error()}, errorCode(ctx, err))
}

func (f *runFlags) printJSON(res *llmsandbox.Result, code int) error {
	if err := writeResult(os.Stdout, *res, f.textError, f.capabilities, f.waiting); err != nil {
		return err
	}
	return exitCode(code)
}

// newTable returns a writer whose tabs become columns.
func newTable(w io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(w, 0, 0, 2, ' ', 0) }

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func printJSON(v any) error { return encodeJSON(os.Stdout, v) }

func encodeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// Exit codes of the command where they are not the program's own.
const (
	exitOurFailure = exitcode.OurFailure
	exitRefused    = exitcode.Refused
	exitBrokenPipe = exitcode.BrokenPipe
	// As a shell reports a program that it cannot start.
	exitNotExecutable = 126
	exitNotFound      = 127
)

// An exitCode ends the command with a code after everything has been said.
type exitCode int

func (c exitCode) Error() string { return fmt.Sprintf("exit code %d", int(c)) }

// codeOf is the command's exit code for a result.
func codeOf(res *llmsandbox.Result) int {
	return exitcode.Of(res.Status, res.ExitCode, res.Signal)
}

// printError says what failed, and below it what to do, when that is known.
func printError(w io.Writer, err error) {
	// What failed may quote names from inside a sandbox.
	fmt.Fprintln(w, paint(w, red, "llmsandbox:")+" "+termsafe.String(strings.TrimSpace(err.Error())))
	if h := hint(err); h != "" {
		fmt.Fprintln(w, paint(w, yellow, "hint:")+" "+h)
	}
	for _, h := range configuredHints(err.Error()) {
		fmt.Fprintln(w, paint(w, yellow, "hint:")+" "+h)
	}
}

func hint(err error) string {
	at, engine, cluster := "", false, false
	var p *placedError
	if errors.As(err, &p) {
		at, engine, cluster = p.place.again(), p.place.onEngine(), p.place.onCluster()
	}
	var option *settings.KeyError
	if linked != nil {
		if h := linked.Hint(err); h != "" {
			return h
		}
	}
	switch {
	case errors.As(err, &option):
		return "`llmsandbox help " + runtimeOptionsTopic + "` lists the keys and what they mean"
	case errors.Is(err, store.ErrNoKey):
		return "`llmsandbox serve key list` lists the keys, with the same --state or --database"
	case errors.Is(err, llmsandbox.ErrNotFound):
		if engine && p.place.Engine.Container != "" || cluster && p.place.Pod.Pod != "" {
			return "" // it is no sandbox that was not found
		}
		return "`llmsandbox ls" + at + "` lists running sandboxes"
	case errors.Is(err, llmsandbox.ErrNotEnforced) && cluster && !p.place.Pod.NetworkEnforced:
		return "`llmsandbox doctor" + at + "` shows what can be enforced, and tests whether network policies are; --best-effort runs without them"
	case errors.Is(err, llmsandbox.ErrNotEnforced):
		return "`llmsandbox doctor" + at + "` shows what can be enforced; --best-effort runs without it"
	case errors.Is(err, llmsandbox.ErrUnsupported):
		return "`llmsandbox doctor" + at + "` shows what is missing and how to fix it"
	case errors.Is(err, llmsandbox.ErrUnknownLanguage), errors.Is(err, llmsandbox.ErrToolchain):
		return "`llmsandbox languages` lists them and which are installed"
	case errors.Is(err, llmsandbox.ErrImageNotFound) && engine:
		return "`llmsandbox images" + at + "` tells which image each language has there"
	case errors.Is(err, llmsandbox.ErrImageNotFound) && cluster:
		return "--image names another image that the nodes have or can pull, --pull-secret the credentials of its registry"
	case errors.Is(err, llmsandbox.ErrImageNotFound) && p != nil && p.engine != "":
		return p.engine + " has this image: add --backend " + strings.ToLower(p.engine)
	case errors.Is(err, llmsandbox.ErrImageNotFound):
		return "`llmsandbox image list` lists the images that are here"
	}
	return ""
}

// A colour is how a word stands out on a terminal.
type colour string

const (
	red    colour = "31"
	green  colour = "32"
	yellow colour = "33"
)

// paint colours text that goes to w, if that is a terminal that wants colours:
// neither NO_COLOR nor TERM=dumb is set.
func paint(w io.Writer, c colour, text string) string {
	f, ok := w.(*os.File)
	if c, console := w.(*console); console {
		f, ok = c.f, true
	}
	if !ok || !isTerminal(f) || os.Getenv("NO_COLOR") != "" || dumb() {
		return text
	}
	return "\x1b[" + string(c) + "m" + text + "\x1b[0m"
}

// The values of --text-errors: what becomes of bytes that are not UTF-8. The names are those
// of Python's codec error handlers.
const (
	textReplace         = "replace"          // each becomes U+FFFD
	textIgnore          = "ignore"           // each is dropped
	textBackslash       = "backslashreplace" // each becomes \xNN
	textSurrogateEscape = "surrogateescape"  // each becomes a lone surrogate, U+DC80 to U+DCFF
	textStrict          = "strict"           // the first one is an error
)

var errNotText = errors.New("output is not valid UTF-8")

func checkTextErrors(mode string) error {
	switch mode {
	case textReplace, textIgnore, textBackslash, textSurrogateEscape, textStrict:
		return nil
	}
	return fmt.Errorf("--text-errors %q: %w: use replace, ignore, backslashreplace, surrogateescape or strict", mode, llmsandbox.ErrInvalid)
}

// textLiteral returns s as a JSON string.
func textLiteral(s, mode string) (string, error) {
	var b strings.Builder
	b.WriteByte('"')
	for i, start := 0, 0; i <= len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r != utf8.RuneError || n > 1 {
			i += n
			continue
		}
		b.WriteString(plainjson.Inside(s[start:i]))
		if i == len(s) {
			break
		}
		switch mode {
		case textReplace:
			b.WriteString("\ufffd")
		case textBackslash:
			fmt.Fprintf(&b, `\\x%02x`, s[i])
		case textSurrogateEscape:
			fmt.Fprintf(&b, `\udc%02x`, s[i])
		case textStrict:
			return "", fmt.Errorf("byte 0x%02x at offset %d: %w: choose another --text-errors", s[i], i, errNotText)
		}
		i++
		start = i
	}
	b.WriteByte('"')
	return b.String(), nil
}

// writeResult writes a result as JSON, with its capabilities if they are asked for.
// encoding/json has no way to write lone surrogates, so
// the output goes where a text was that nothing else can contain.
func writeResult(w io.Writer, res llmsandbox.Result, mode string, capabilities bool, run *warmRun) error {
	var put []string
	for _, s := range []*string{&res.Stdout, &res.Stderr} {
		literal, err := textLiteral(*s, mode)
		if err != nil {
			return err
		}
		*s = rand.Text()
		put = append(put, `"`+*s+`"`, literal)
	}
	text, err := res.MarshalJSON()
	if err != nil {
		return err
	}
	if capabilities {
		more, err := json.Marshal(res.Capabilities)
		if err != nil {
			return err
		}
		text = slices.Concat(text[:len(text)-1], []byte(`,"capabilities":`), more, []byte("}"))
	}
	if run != nil {
		text = fmt.Appendf(text[:len(text)-1], `,"warm":%t}`, run.claimed != nil)
	}
	var out strings.Builder
	if err := encodeJSON(&out, json.RawMessage(text)); err != nil {
		return err
	}
	_, err = strings.NewReplacer(put...).WriteString(w, out.String())
	return err
}
