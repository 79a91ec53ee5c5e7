package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/security"
)

type executeArgs struct {
	Code      string   `json:"code" jsonschema:"the program; print what you want to see"`
	Language  string   `json:"language,omitempty" jsonschema:"for shell commands use bash"`
	Libraries []string `json:"libraries,omitempty" jsonschema:"packages to install first, such as numpy==1.26.4"`
	Timeout   int      `json:"timeout,omitempty" jsonschema:"seconds, without the installation"`
}

func (s *Server) addExecute() {
	add(s, tool{
		name: "execute_code", title: "Run code",
		description: "Run a program or shell script in a fresh sandbox. Only what it prints is returned, so print your results. " +
			"Nothing is kept for the next call: for that, use create_session. Plots (plt.show()) come back as images with their " +
			"data, and files written to ./artifacts are attached. " + s.place(),
		hints:  hints{openWorld: s.openWorld()},
		output: outputSchema[outcome](),
		bounds: func(p properties) {
			s.boundCode(p)
			s.boundLanguage(p)
		},
	}, running(s, s.execute))
}

// running has whatever goes wrong with code have the shape of an outcome.
func running[In any](s *Server, run func(context.Context, *call, In) (*sdk.CallToolResult, outcome, error)) func(context.Context, *call, In) (*sdk.CallToolResult, outcome, error) {
	return func(ctx context.Context, c *call, in In) (*sdk.CallToolResult, outcome, error) {
		res, out, err := run(ctx, c, in)
		if err != nil {
			out = s.failed(err)
			res = s.cfg.result(&out, nil, nil)
		}
		c.became.Status = llmsandbox.Status(out.Status)
		return res, out, nil
	}
}

func (s *Server) execute(ctx context.Context, c *call, in executeArgs) (*sdk.CallToolResult, outcome, error) {
	l, err := s.catalog.find(in.Language)
	if err != nil {
		return nil, outcome{}, fmt.Errorf("%w; use %s", err, list(s.catalog.names, "or"))
	}
	if err := s.mayInstall(in.Libraries); err != nil {
		return nil, outcome{}, err
	}
	// No sandbox is taken for code that would not run in it. Those that are taken check
	// nothing themselves.
	findings, refused, err := s.cfg.Sandbox.Policy.Check(ctx, security.Program{Language: l.Name, Code: []byte(in.Code), Libraries: in.Libraries})
	if err != nil {
		return nil, outcome{}, err
	}
	if refused != "" {
		out := s.cfg.outcome(&llmsandbox.Result{Status: llmsandbox.StatusRefused, Reason: refused, Findings: findings})
		return s.cfg.result(&out, nil, nil), out, nil
	}
	c.say("waiting for a sandbox")
	sb, release, err := s.sandboxes.acquire(ctx, c.owner.user, l.Name, in.Libraries, c.progress)
	if err != nil {
		return nil, outcome{}, err
	}
	defer release()
	defer s.using(c, sb)()
	c.say("running")
	timeout, notes := s.timeout(in.Timeout)
	return s.runProgram(ctx, c, sb, l.Name, in.Code, timeout, func(out *outcome) {
		out.find(findings)
		out.Notes = append(out.Notes, notes...)
		if s.cfg.Commit == nil {
			return
		}
		image, err := s.cfg.Commit(ctx, sb, l.Name)
		if err != nil {
			out.note("no image was created: %s", s.message(err))
			return
		}
		out.Image = line(image)
	})
}

// runProgram runs code as a process of its own. after, when set, is called with the
// outcome before it is sent.
func (s *Server) runProgram(ctx context.Context, c *call, sb *llmsandbox.Sandbox, language, code string, timeout time.Duration, after func(*outcome)) (*sdk.CallToolResult, outcome, error) {
	c.became.SandboxID = sb.ID()
	res, err := sb.Run(ctx, code, &llmsandbox.RunOptions{Language: language, Timeout: timeout})
	if err != nil {
		return nil, outcome{}, err
	}
	c.became.Network, c.became.NetworkDropped = res.Network, res.NetworkDropped
	out := s.cfg.outcome(res)
	if res.OK() && res.Stdout+res.Stderr == "" && len(res.Artifacts) == 0 {
		out.note("no output: print what you want to see")
	}
	after(&out)
	return s.cfg.result(&out, res.Artifacts, res.ArtifactsDropped), out, nil
}

// readArguments decodes the arguments of a tool. Its errors are sentences for a model, in
// place of a validator's paths. What is left out gets its default, and so does what
// is null: clients whose language has None send it so.
func readArguments(tool string, schema *jsonschema.Schema, raw json.RawMessage, to any) error {
	given := map[string]json.RawMessage{}
	if len(raw) > 0 && json.Unmarshal(raw, &given) != nil {
		return errors.New("the arguments must be one JSON object")
	}
	if given == nil { // null
		given = map[string]json.RawMessage{}
	}
	names := slices.Sorted(maps.Keys(schema.Properties))
	for _, name := range slices.Sorted(maps.Keys(given)) {
		value := given[name]
		if string(value) == "null" {
			delete(given, name)
			continue
		}
		p, known := schema.Properties[name]
		if !known {
			return fmt.Errorf("%s has no argument %q: it takes %s", tool, line(name), list(names, "and"))
		}
		checked, err := checkArgument(name, p, value)
		if err != nil {
			return err
		}
		given[name] = checked
	}
	for name, p := range schema.Properties {
		if _, ok := given[name]; !ok && p.Default != nil {
			given[name] = p.Default
		}
	}
	for _, name := range schema.Required {
		if _, ok := given[name]; !ok {
			return fmt.Errorf("%s is missing: %s needs it", name, tool)
		}
	}
	plain, err := json.Marshal(given)
	if err != nil {
		return fmt.Errorf("read the arguments: %w", err)
	}
	if err := json.Unmarshal(plain, to); err != nil {
		return fmt.Errorf("read the arguments: %w", err)
	}
	return nil
}

// maxInteger is where floating-point numbers, which clients send, stop being exact.
const maxInteger = 1 << 53

// checkArgument returns a value that fits its schema, in the form that Go decodes.
func checkArgument(name string, p *jsonschema.Schema, raw json.RawMessage) (json.RawMessage, error) {
	switch p.Type {
	case "string":
		var text string
		if raw[0] != '"' || json.Unmarshal(raw, &text) != nil { // null would be taken
			return nil, fmt.Errorf("%s must be a string", name)
		}
		if n := utf8.RuneCountInString(text); p.MaxLength != nil && n > *p.MaxLength {
			return nil, fmt.Errorf("%s is too long: it has %d characters, and the maximum is %d", name, n, *p.MaxLength)
		}
		// Languages have aliases, which the catalog knows.
		if p.Enum != nil && name != "language" && !slices.Contains(p.Enum, any(text)) {
			var choices []string
			for _, v := range p.Enum {
				choices = append(choices, fmt.Sprint(v))
			}
			return nil, fmt.Errorf("%s must be %s, not %q", name, list(choices, "or"), line(text))
		}
	case "boolean":
		var b bool
		if json.Unmarshal(raw, &b) != nil {
			return nil, fmt.Errorf("%s must be true or false", name)
		}
	case "integer":
		var n float64
		if json.Unmarshal(raw, &n) != nil || n != math.Trunc(n) || math.Abs(n) > maxInteger {
			return nil, fmt.Errorf("%s must be a whole number", name)
		}
		if p.Minimum != nil && n < *p.Minimum {
			return nil, fmt.Errorf("%s must be at least %.0f, not %.0f", name, *p.Minimum, n)
		}
		return fmt.Appendf(nil, "%.0f", n), nil
	case "array":
		var items []json.RawMessage
		if json.Unmarshal(raw, &items) != nil {
			return nil, fmt.Errorf("%s must be a list", name)
		}
		if p.MaxItems != nil && len(items) > *p.MaxItems {
			return nil, fmt.Errorf("%s is too long: it has %s, and the maximum is %d", name, count(len(items), "item"), *p.MaxItems)
		}
		for _, item := range items {
			if _, err := checkArgument("each item of "+name, p.Items, item); err != nil {
				return nil, err
			}
		}
	}
	return raw, nil
}

// list writes names as a sentence has them.
func list(names []string, word string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " " + word + " " + names[last]
}
