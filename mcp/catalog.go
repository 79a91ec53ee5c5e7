package mcp

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/ctxlock"
	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/language/all"
)

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
	sb, release, err := c.sandboxes.acquire(ctx, l.Name, nil, steps)
	if err != nil {
		return nil, err
	}
	defer release()
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
	for _, program := range alternatives(l, argv[0]) {
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

// alternatives are the names that a program may have.
func alternatives(l *language.Language, program string) []string {
	for _, names := range l.Programs {
		if slices.Contains(names, program) {
			return names
		}
	}
	return []string{program}
}
