package llmsandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/llmsandbox/llmsandbox/internal/environ"
	"github.com/llmsandbox/llmsandbox/internal/language"
)

// registries finds where the libraries come from, and which of these are this machine's own.
// Nobody has looked at what an image says, so what it names beyond them must not lead into
// private networks. inside asks the sandbox that installs, which has the host's own system
// or an image.
func (q *libraryRequest) registries(ctx context.Context, inside language.Ask, host bool) (r language.Registries, own []string, err error) {
	find := q.language.Libraries.Registries
	machine, err := find(hostTools(ctx))
	if host || !q.language.Libraries.Inside {
		if err == nil || host || !errors.Is(err, fs.ErrNotExist) {
			return machine, machine.URLs, err
		}
	}
	if err != nil {
		machine.URLs = nil // this machine names none, whatever the reason
	}
	if r, err = find(inside); err != nil {
		return r, nil, fmt.Errorf("ask the image: %w", err)
	}
	for _, address := range r.URLs {
		u, err := url.Parse(address)
		if err != nil {
			return r, nil, fmt.Errorf("the image's registry: %w: %w", ErrInvalid, err)
		}
		if _, err := netip.ParseAddr(strings.Trim(u.Hostname(), "[]")); err == nil {
			return r, nil, fmt.Errorf("the image names a registry by the address %s: %w: only names are taken from images", u.Hostname(), ErrUnsupported)
		}
	}
	return r, machine.URLs, nil
}

// tools asks the package tools in the sandbox for their configuration. What they answer is
// of the image, and bounded like all output.
func (s *Sandbox) tools(ctx context.Context) language.Ask {
	return language.Ask{
		Program: func(argv ...string) ([]byte, error) { return s.askTool(ctx, argv) },
		Env:     func(name string) string { return environ.Value(s.env, name) },
		File: func(path string) ([]byte, error) {
			client, err := s.link.get(ctx)
			if err != nil {
				return nil, err
			}
			data, err := client.ReadAll(ctx, path, maxAnswer)
			if err != nil && absent(err) {
				return nil, fmt.Errorf("%s: %w", path, fs.ErrNotExist)
			}
			return data, err
		},
		Home: environ.Value(s.env, "HOME"),
	}
}

func (s *Sandbox) askTool(ctx context.Context, argv []string) ([]byte, error) {
	there, err := s.inPath(ctx, argv[0])
	if err != nil {
		return nil, err
	}
	if !there {
		return nil, fmt.Errorf("%s: %w", argv[0], fs.ErrNotExist)
	}
	r, err := s.newExecution(execution{timeout: min(toolTimeout, max(s.limits.Timeout, time.Second))})
	if err != nil {
		return nil, err
	}
	r.language = s.language
	res, err := r.result(ctx, r.execute(ctx, language.Plan{Steps: []language.Step{{Argv: argv}}}))
	switch {
	case err != nil:
		return nil, fmt.Errorf("ask %s: %w", argv[0], err)
	case res.Status != StatusOK:
		return nil, fmt.Errorf("ask %s: it ended as %s: %s", argv[0], res.Status, lastLine(res.Stderr))
	case len(res.Stdout) > maxAnswer:
		return nil, fmt.Errorf("ask %s: it says more than %d bytes", argv[0], maxAnswer)
	}
	return []byte(res.Stdout), nil
}
