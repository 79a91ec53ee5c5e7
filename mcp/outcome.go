package mcp

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/artifact"
	"github.com/llmsandbox/llmsandbox/internal/bytesize"
	"github.com/llmsandbox/llmsandbox/internal/exitcode"
	"github.com/llmsandbox/llmsandbox/internal/plainjson"
	"github.com/llmsandbox/llmsandbox/internal/termsafe"
	"github.com/llmsandbox/llmsandbox/security"
)

// An outcome is what a tool reports of code.
type outcome struct {
	// ExitCode is absent when no program ran, or nobody saw it end.
	ExitCode *int   `json:"exit_code,omitempty" jsonschema:"absent if nothing ran; 124 timeout, 126 refused, 137 out of memory, 153 too much output"`
	Stderr   string `json:"stderr"`
	Stdout   string `json:"stdout"`
	Status   string `json:"status" jsonschema:"ok, error, timeout, out_of_memory, output_limit, killed, refused, setup_failed or lost"`
	Error    string `json:"error,omitempty" jsonschema:"why the code did not run or did not end by itself"`
	Value    string `json:"value,omitempty" jsonschema:"last expression"`
	// StateLost is of a session only.
	StateLost  bool           `json:"state_lost,omitempty"`
	DurationMS float64        `json:"duration_ms"`
	Artifacts  []artifactNote `json:"artifacts,omitempty"`
	Findings   []findingNote  `json:"findings,omitempty" jsonschema:"policy findings"`
	Network    []string       `json:"network,omitempty" jsonschema:"connections that failed"`
	Image      string         `json:"image,omitempty"`
	Hints      []string       `json:"hints,omitempty"`
	Notes      []string       `json:"notes,omitempty"`
	// NotEnforced are the limits that this machine does not hold.
	NotEnforced []string `json:"not_enforced,omitempty"`
}

type findingNote struct {
	Rule     string `json:"rule"`
	Severity string `json:"severity"`
	Line     int    `json:"line,omitempty"`
	Column   int    `json:"column,omitempty"`
	Code     string `json:"code,omitempty"`
	Reason   string `json:"reason,omitempty"`
}

// maxNotes bounds the lists of an outcome.
const maxNotes = 20

// outcome says what became of a program or cell.
func (c Config) outcome(o *llmsandbox.Result) outcome {
	out := outcome{
		Status: string(o.Status), Error: line(o.Reason), DurationMS: float64(o.Duration.Microseconds()) / 1000,
		NotEnforced: unenforced(o.Capabilities),
	}
	if code := exitcode.Of(o.Status, o.ExitCode, o.Signal); code != exitcode.OurFailure || o.ExitCode == exitcode.OurFailure {
		out.ExitCode = &code
	}
	out.Stdout = out.text("stdout", o.Stdout, o.StdoutTruncated, c.MaxText)
	out.Stderr = out.text("stderr", o.Stderr, o.StderrTruncated, c.MaxText)
	if o.Status == llmsandbox.StatusKilled && out.Error == "" && o.Signal != "" {
		out.Error = "the program was killed by " + line(o.Signal)
	}
	out.find(o.Findings)
	out.Hints = c.hints(o.Hints)
	for _, a := range o.Network {
		if a.Allowed && a.Reason == "" {
			continue
		}
		if len(out.Network) == maxNotes {
			out.note("network: more connections failed than are listed")
			break
		}
		out.Network = append(out.Network, line(fmt.Sprintf("%s:%d: %s", a.Name, a.Port, a.Reason)))
	}
	return out
}

// find takes up what a policy has found.
func (o *outcome) find(findings []security.Finding) {
	for i, f := range findings {
		if i == maxNotes {
			o.note("findings: %d more", len(findings)-i)
			return
		}
		o.Findings = append(o.Findings, findingNote{
			Rule: line(f.Rule), Severity: f.Severity.String(), Line: f.Line, Column: f.Column, Code: line(f.Code), Reason: line(f.Reason),
		})
	}
}

// text cleans and bounds one of the texts.
func (o *outcome) text(name, s string, truncated bool, most int) string {
	s, cut := shorten(clean(s), most)
	if cut > 0 {
		o.note("%s: %s left out of the middle; write long output to a file of a session and read parts of it", name, count(cut, "byte"))
	}
	if truncated {
		o.note("%s: the program wrote more than the sandbox keeps", name)
	}
	return s
}

func (o *outcome) note(format string, args ...any) {
	o.Notes = append(o.Notes, fmt.Sprintf(format, args...))
}

// ours reports whether what went wrong is not the program's doing: it did not run, or its end is
// unknown.
func (o *outcome) ours() bool {
	switch llmsandbox.Status(o.Status) {
	case llmsandbox.StatusSetupFailed, llmsandbox.StatusLost, llmsandbox.StatusRefused:
		return true
	}
	return false
}

// failed is the outcome of code that did not run.
func (s *Server) failed(err error) outcome {
	out := outcome{Status: string(llmsandbox.StatusSetupFailed), Error: s.message(err)}
	var refused *llmsandbox.RefusedError
	switch {
	case errors.As(err, &refused):
		out.Status, out.ExitCode = string(llmsandbox.StatusRefused), new(exitcode.Refused)
		out.find(refused.Report.Findings)
	case errors.Is(err, llmsandbox.ErrLost):
		out.Status = string(llmsandbox.StatusLost)
	}
	return out
}

// jsonText is JSON as text of a result. Angle brackets stay themselves.
func jsonText(v any) string {
	b, err := plainjson.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("mcp: %T cannot be JSON: %v", v, err)) // numbers and text always can be
	}
	return string(b)
}

// What is no picture is embedded up to these sizes, in bytes.
const (
	maxEmbedded    = 256 << 10
	maxAllEmbedded = 1 << 20
)

// An artifactNote describes an artifact, whether its content is there or not.
type artifactNote struct {
	Name   string `json:"name"`
	MIME   string `json:"mime"`
	Bytes  int    `json:"bytes"`
	Title  string `json:"title,omitempty"`
	Width  int    `json:"width,omitempty"`
	Height int    `json:"height,omitempty"`
	// Omitted says why the content is not.
	Omitted string `json:"omitted,omitempty"`
	// Chart is what a picture shows.
	Chart *artifact.Chart `json:"chart,omitempty"`
}

// result lays out a result: pictures in their order, the outcome as JSON, and what else
// the code has made as embedded resources. It notes all of them in the outcome.
func (c Config) result(out *outcome, made []llmsandbox.Artifact, dropped []string) *sdk.CallToolResult {
	var pictures, others []sdk.Content
	var pictureBytes int64
	embedded := 0
	var charts charts
	for i, a := range made {
		note := artifactNote{Name: line(a.Name), MIME: a.MIME, Bytes: len(a.Data), Title: line(a.Title), Width: a.Width, Height: a.Height}
		if a.Chart != nil {
			var cut string
			if note.Chart, cut = charts.add(a.Chart); cut != "" {
				out.note("%s: %s", note.Name, cut)
			}
		}
		switch {
		case isPicture(a.MIME):
			switch size := int64(len(a.Data)); {
			case len(pictures) == c.MaxImages:
				note.Omitted = "a result has at most " + count(c.MaxImages, "image")
			case pictureBytes+size > c.MaxImageBytes:
				note.Omitted = "the images of a result have at most " + bytesize.Format(c.MaxImageBytes)
			default:
				pictureBytes += size
				pictures = append(pictures, &sdk.ImageContent{Data: a.Data, MIMEType: a.MIME})
			}
		case len(a.Data) > maxEmbedded || embedded+len(a.Data) > maxAllEmbedded:
			note.Omitted = "files of a result have at most " + bytesize.Format(maxEmbedded) + " each and " + bytesize.Format(maxAllEmbedded) + " in all"
		default:
			embedded += len(a.Data)
			uri := fmt.Sprintf("sandbox://artifacts/%d/%s", i+1, url.PathEscape(note.Name))
			others = append(others, &sdk.EmbeddedResource{Resource: resource(uri, a.MIME, a.Data)})
		}
		out.Artifacts = append(out.Artifacts, note)
	}
	for i, d := range dropped {
		if i == maxNotes {
			out.note("artifacts: %d more are left out", len(dropped)-i)
			break
		}
		out.note("artifacts: %s", line(d))
	}
	return &sdk.CallToolResult{
		IsError: out.ours(),
		Content: slices.Concat(pictures, []sdk.Content{&sdk.TextContent{Text: jsonText(out)}}, others),
	}
}

// isPicture reports which artifacts a client can be expected to show a model as they are.
func isPicture(mime string) bool { return mime == artifact.PNG || mime == artifact.JPEG }

// resource is a file's content as the protocol has it. Text is clean, and all of it data.
func resource(uri, mime string, data []byte) *sdk.ResourceContents {
	r := &sdk.ResourceContents{URI: uri, MIMEType: mime}
	if strings.HasPrefix(mime, "text/") || mime == artifact.SVG || mime == artifact.JSON {
		r.Text = clean(string(data))
	} else {
		r.Blob = data
	}
	return r
}

// clean makes text from a sandbox fit for a model and for a person who reads over its
// shoulder: valid UTF-8, and no control sequences or characters that hide or forge. A
// carriage return, which on a terminal hides what stands before it, becomes a new line.
func clean(s string) string {
	return lines.Replace(termsafe.String(s))
}

// lines turns every end of a line into a new line.
var lines = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\b", "")

// shorten bounds text at about most bytes: its beginning and its end are kept, and a line
// between them says how much is not. cut is the number of bytes left out.
func shorten(s string, most int) (short string, cut int) {
	if len(s) <= most {
		return s, 0
	}
	head := most / 2
	for head > 0 && !utf8.RuneStart(s[head]) {
		head--
	}
	tail := len(s) - (most - most/2)
	for tail < len(s) && !utf8.RuneStart(s[tail]) {
		tail++
	}
	cut = tail - head
	return fmt.Sprintf("%s\n[... %s left out ...]\n%s", s[:head], count(cut, "byte"), s[tail:]), cut
}

// line is clean text in one short line, for names and messages.
func line(s string) string {
	const most = 1000
	s, _ = shorten(clean(s), most)
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' }), " ")
}

// count writes a number of things, such as "1 byte" or "0.5 CPUs".
func count[N int | float64](n N, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%v %ss", n, thing)
}

// span writes a time as people do: in minutes or seconds where it is a whole number of them.
func span(d time.Duration) string {
	switch {
	case d >= time.Minute && d%time.Minute == 0:
		return count(int(d/time.Minute), "minute")
	case d >= time.Second && d%time.Second == 0:
		return count(int(d/time.Second), "second")
	}
	return d.String()
}

// hints says in the words of this server's tools what may help, and what only its operator can change.
func (c Config) hints(found []llmsandbox.Hint) []string {
	var list, hosts []string
	offline := false
	for _, h := range found {
		switch h.Kind {
		case llmsandbox.HintLibrary:
			if c.NoLibraries {
				list = append(list, h.Subject+" is not installed, and only the operator of this server can change that")
				continue
			}
			list = append(list, fmt.Sprintf("%s is not installed: list it in libraries of execute_code, or install it in a session with install_libraries", h.Subject))
		case llmsandbox.HintFile:
			list = append(list, h.Subject+" is not in the sandbox: write it into a session first, with write_file")
		case llmsandbox.HintNetwork:
			offline = true
			if h.Subject != "" {
				hosts = append(hosts, h.Subject)
			}
		case llmsandbox.HintTimeout:
			list = append(list, fmt.Sprintf("pass a longer timeout (the operator allows %s), or do less in one call", span(c.Sandbox.Limits.Timeout)))
		case llmsandbox.HintMemory:
			list = append(list, "use less memory at once: only the operator of this server can raise the limit")
		case llmsandbox.HintOutput:
			list = append(list, "write long output to a file and read a part of it")
		case llmsandbox.HintDisk:
			list = append(list, "remove files that are no longer needed: only the operator of this server can raise the limit of the disk")
		case llmsandbox.HintIsolation:
			switch h.Subject {
			case "":
				list = append(list, "code may not listen on a port here")
			case "/tmp":
				list = append(list, "/tmp is not the sandbox's own: use the working directory, or the directory in TMPDIR")
			default:
				list = append(list, "there is no "+h.Subject+" here: do without it")
			}
		}
	}
	switch {
	case len(hosts) > 0:
		list = append(list, "the sandbox may not reach "+strings.Join(hosts, ", ")+": only the operator of this server can allow it")
	case offline:
		list = append(list, "the sandbox has no network: only the operator of this server can allow one")
	}
	return list
}
