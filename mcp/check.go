package mcp

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sync/errgroup"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
)

// checked is what Check has found; nil before.
type checked struct {
	unenforced []string // limits
	isolation  string
}

// holds reports whether a limit was found to be enforced.
func (c *checked) holds(limit string) bool {
	return c != nil && !slices.Contains(c.unenforced, limit)
}

// Check opens a sandbox as calls get it, and removes it: one of the default language, and one of
// each language that is kept ready or has an image of its own. With Config.Zygote, it does so
// from an interpreter, too. It fails with the error that calls would end with, such as llmsandbox.ErrNotEnforced or ErrImageNotFound, and returns what
// is enforced in the sandbox of the default language. From then on instructions and
// descriptions name the limits that hold, and which libraries are installed. Call it before
// clients are served; without it they name neither.
func (s *Server) Check(ctx context.Context) (backend.Capabilities, error) {
	ctx, done, err := s.begin(ctx)
	if err != nil {
		return backend.Capabilities{}, err
	}
	defer done()
	usual := s.catalog.usual()
	names := append(slices.Collect(maps.Keys(s.cfg.Images)), s.cfg.WarmLanguages...)
	slices.Sort(names)
	var found backend.Capabilities
	group, opening := errgroup.WithContext(ctx)
	for _, name := range slices.Compact(names) {
		if name == usual || !slices.Contains(s.catalog.names, name) {
			continue
		}
		group.Go(func() error {
			sb, err := s.openOne(opening, name)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			s.sandboxes.remove(sb)
			return nil
		})
	}
	if s.cfg.Zygote && slices.Contains(s.catalog.names, preferred) {
		group.Go(func() error { return s.tryZygote(opening) })
	}
	group.Go(func() error {
		sb, err := s.openOne(opening, usual)
		if err != nil {
			return err
		}
		found = sb.Capabilities()
		s.learnUsual(sb)
		return nil
	})
	if err := group.Wait(); err != nil {
		return backend.Capabilities{}, err
	}
	s.checked.Store(&checked{unenforced: unenforced(found), isolation: found.Isolation})
	return found, nil
}

func (s *Server) openOne(ctx context.Context, language string) (*llmsandbox.Sandbox, error) {
	o := s.sandboxes.options(language, nil)
	return llmsandbox.Open(ctx, &o)
}

// tryZygote opens a sandbox from an interpreter, as the pool does once there is a client.
func (s *Server) tryZygote(ctx context.Context) error {
	o := s.sandboxes.options(preferred, nil)
	z, err := llmsandbox.NewZygote(ctx, &o)
	if err != nil {
		return err
	}
	sb, err := z.Open(ctx)
	if err == nil {
		s.sandboxes.remove(sb)
	}
	return errors.Join(err, z.Close())
}

// unenforced are the limits that do not hold.
func unenforced(found backend.Capabilities) []string {
	var names []string
	for _, limit := range []string{"memory", "cpus", "pids", "disk"} {
		if c, known := found.Get(limit); known && !c.Enforced {
			names = append(names, limit)
		}
	}
	return names
}

// learnUsual asks in a sandbox which libraries the default language has, while clients are
// served, and removes the sandbox.
func (s *Server) learnUsual(sb *llmsandbox.Sandbox) {
	l, err := s.catalog.find(s.catalog.usual())
	e := s.catalog.known[s.catalog.usual()]
	if err != nil || e.asking.Lock(s.ctx) != nil {
		s.sandboxes.remove(sb)
		return
	}
	s.calls.Go(func() { // counted beside Check's own call
		defer s.sandboxes.remove(sb)
		defer e.asking.Unlock()
		if e.said != nil {
			return
		}
		if _, err := e.learn(s.ctx, sb, l); err != nil && s.ctx.Err() == nil {
			s.cfg.Log.Info("the toolchain could not be asked for its libraries", "language", l.Name, "error", err)
		}
	})
}

// learning is how long a list of tools waits for the libraries that are being asked for.
const learning = 2 * time.Second

// nameLibraries adds to the description of execute_code which libraries are installed, where
// Check has asked for them.
func (s *Server) nameLibraries(ctx context.Context, tools *sdk.ListToolsResult) {
	if s.checked.Load() == nil {
		return
	}
	l, err := s.catalog.find(s.catalog.usual())
	if err != nil || l.Details.Present == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, learning)
	defer cancel()
	e := s.catalog.known[l.Name]
	if e.asking.Lock(ctx) != nil {
		return
	}
	said := e.said
	e.asking.Unlock()
	i := slices.IndexFunc(tools.Tools, func(t *sdk.Tool) bool { return t.Name == "execute_code" })
	if said == nil || i < 0 {
		return
	}
	text := " " + l.Title + " has these libraries: " + strings.Join(said.libraries, ", ") + "."
	if len(said.libraries) == 0 {
		text = " " + l.Title + " has its standard library only."
	}
	if !s.cfg.NoLibraries {
		text += " List others in libraries."
	}
	described := *tools.Tools[i]
	described.Description += text
	tools.Tools = slices.Clone(tools.Tools)
	tools.Tools[i] = &described
}
