package mcp

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/ctxlock"
	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/language/all"
)

// languagesURI is the resource that describes all languages.
const languagesURI = "sandbox://languages"

type none struct{}

type languageList struct {
	Languages []string `json:"languages"`
}

type detailsArgs struct {
	Language string `json:"language" jsonschema:"language name"`
}

// languageDetails describes a language.
type languageDetails struct {
	Version        string        `json:"version"`
	PackageManager string        `json:"package_manager"`
	Preinstalled   []string      `json:"preinstalled_libraries"`
	UseCases       []string      `json:"use_cases"`
	Visualization  bool          `json:"visualization_support"`
	Stateful       bool          `json:"session_support"`
	Examples       []exampleNote `json:"examples"`
	Note           string        `json:"note,omitempty"`
}

type exampleNote struct {
	Title       string `json:"title"`
	Description string `json:"description"`
	Code        string `json:"code"`
}

// detailsOrError is either answer of get_language_details.
type detailsOrError struct {
	*languageDetails
	Error string `json:"error,omitempty"`
}

func (s *Server) addLanguages() {
	free := hints{readOnly: true, idempotent: true}
	add(s, tool{
		name: "get_supported_languages", title: "List languages", hints: free,
		description: "List the languages that you can run code in.",
	}, func(context.Context, *call, none) (*sdk.CallToolResult, languageList, error) {
		names := s.catalog.names
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: jsonText(names)}}}, languageList{names}, nil
	})
	add(s, tool{
		name: "get_language_details", title: "Describe a language", hints: free,
		description: "Get a language's version, package manager, preinstalled libraries and runnable examples.",
		bounds:      s.listLanguages,
	}, s.getLanguageDetails)
	s.mcp.AddResource(&sdk.Resource{
		URI: languagesURI, Name: "languages", Title: "Languages", MIMEType: "application/json",
		Description: "The result of get_language_details for every language.",
	}, s.readLanguages)
}

func (s *Server) getLanguageDetails(ctx context.Context, c *call, in detailsArgs) (*sdk.CallToolResult, detailsOrError, error) {
	l, err := s.catalog.find(in.Language)
	if err != nil {
		return &sdk.CallToolResult{IsError: true}, detailsOrError{Error: err.Error()}, nil
	}
	d := s.describe(ctx, l, c.progress)
	if err := ctx.Err(); err != nil {
		return nil, detailsOrError{}, context.Cause(ctx)
	}
	return nil, detailsOrError{languageDetails: &d}, nil
}

// describe describes a language. What its toolchain has not said is unknown, and why.
func (s *Server) describe(ctx context.Context, l *language.Language, steps *progress) languageDetails {
	d := languageDetails{
		Version: "unknown", PackageManager: l.Details.PackageManager, Preinstalled: []string{}, UseCases: l.Details.UseCases,
		Visualization: l.Capture != nil, Stateful: l.Kernel != nil, Examples: []exampleNote{},
	}
	if s.cfg.NoLibraries {
		d.Note = "The operator does not allow installing libraries."
	}
	if l.Details.Untested {
		d.Note = strings.TrimSpace(d.Note + " This language was not tested with the sandbox.")
	}
	said, err := s.catalog.ask(ctx, l, steps)
	if err != nil {
		d.Note = "The toolchain could not be asked: " + s.message(err)
	} else {
		d.Version, d.Preinstalled = said.version, said.libraries
	}
	missing := func(library string) bool { return !slices.Contains(d.Preinstalled, library) }
	for _, e := range l.Details.Examples {
		if !slices.ContainsFunc(e.Libraries, missing) {
			d.Examples = append(d.Examples, exampleNote{Title: e.Title, Description: e.Description, Code: e.Code})
		}
	}
	return d
}

// readLanguages asks all toolchains side by side, as far as calls may run side by side.
func (s *Server) readLanguages(ctx context.Context, req *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
	ctx, done, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	list := map[string]languageDetails{}
	var mu sync.Mutex // of list
	var asked sync.WaitGroup
	for _, name := range s.catalog.names {
		asked.Go(func() {
			l, err := s.catalog.find(name)
			if err != nil {
				return // names on offer are found
			}
			d := s.describe(ctx, l, &progress{})
			mu.Lock()
			defer mu.Unlock()
			list[name] = d
		})
	}
	asked.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: languagesURI, MIMEType: "application/json", Text: jsonText(list)}}}, nil
}

// A catalog is the languages on offer, and what their toolchains have said of themselves.
type catalog struct {
	names     []string
	sandboxes *sandboxes
	known     map[string]*entry
}

// An entry is what a toolchain has said, once it was asked.
type entry struct {
	asking ctxlock.Mutex
	said   *inventory // under asking
}

// An inventory is what is there of a language.
type inventory struct {
	version   string
	libraries []string
}

// newCatalog makes a catalog of languages by their canonical names.
func newCatalog(names []string, from *sandboxes) *catalog {
	c := &catalog{names: names, sandboxes: from, known: map[string]*entry{}}
	for _, name := range names {
		c.known[name] = &entry{asking: ctxlock.New()}
	}
	return c
}

// usual is the language of code that does not say.
func (c *catalog) usual() string {
	if slices.Contains(c.names, preferred) {
		return preferred
	}
	return c.names[0]
}

// find returns a language that is on offer, by its name or an alias.
func (c *catalog) find(name string) (*language.Language, error) {
	l, err := all.Get(name)
	if err != nil || !slices.Contains(c.names, l.Name) {
		return nil, unsupportedError(line(name))
	}
	return l, nil
}

// An unsupportedError is a name that no language on offer has. Its text is part of the
// tools' contract.
type unsupportedError string

func (e unsupportedError) Error() string { return "Unsupported language: " + string(e) }

// ask returns what a language's toolchain says of itself, in a sandbox like those that
// code gets. It is asked until it has answered once.
func (c *catalog) ask(ctx context.Context, l *language.Language, steps *progress) (*inventory, error) {
	e := c.known[l.Name]
	if err := e.asking.Lock(ctx); err != nil {
		return nil, err
	}
	defer e.asking.Unlock()
	if e.said != nil {
		return e.said, nil
	}
	steps.say("asking for " + l.Title + "'s version")
	sb, release, err := c.sandboxes.acquire(ctx, "", l.Name, nil, steps)
	if err != nil {
		return nil, err
	}
	defer release()
	return e.learn(ctx, sb, l)
}

// learn asks a toolchain in a sandbox. The caller holds e.asking.
func (e *entry) learn(ctx context.Context, sb *llmsandbox.Sandbox, l *language.Language) (*inventory, error) {
	said := &inventory{libraries: []string{}}
	text, err := query(ctx, sb, l, l.Details.Version)
	if err != nil {
		return nil, err
	}
	said.version, _, _ = strings.Cut(text, "\n")
	if l.Details.Present != nil {
		text, err := query(ctx, sb, l, l.Details.Present(l.Details.Known))
		if err != nil {
			return nil, err
		}
		for _, name := range strings.Fields(text) {
			if slices.Contains(l.Details.Known, name) {
				said.libraries = append(said.libraries, name)
			}
		}
	}
	e.said = said
	return said, nil
}

// query runs a command of a language's details and returns what it prints.
func query(ctx context.Context, sb *llmsandbox.Sandbox, l *language.Language, argv []string) (string, error) {
	for _, program := range l.Alternatives(argv[0]) {
		res, err := sb.Exec(ctx, append([]string{program}, argv[1:]...), &llmsandbox.ExecOptions{Timeout: 20 * time.Second})
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return "", fmt.Errorf("ask %s: %w", program, err)
		case !res.OK():
			return "", fmt.Errorf("ask %s: it ended as %s", program, res.Status)
		}
		return strings.TrimSpace(clean(res.Stdout + res.Stderr)), nil
	}
	return "", fmt.Errorf("%s: %w", l.Title, llmsandbox.ErrToolchain)
}
