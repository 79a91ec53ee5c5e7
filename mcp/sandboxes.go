package mcp

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/sessions"
	"github.com/llmsandbox/llmsandbox/pool"
)

// sandboxes are where calls get a fresh sandbox each: warm ones out of a pool, and for a
// list of libraries one that is opened with it. They have no policy, since each is for one
// program, which has been checked, with its libraries, before a sandbox is taken for it.
type sandboxes struct {
	cfg    Config
	places *sessions.Queue

	mu     sync.Mutex
	pool   *pool.Pool // nil until it is needed
	closed bool
}

// warm makes the pool, which begins to fill it, if there is none.
func (s *sandboxes) warm() (*pool.Pool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosing
	}
	if s.pool == nil {
		p, err := pool.New(new(s.cfg.pool()))
		if err != nil {
			return nil, err
		}
		s.pool = p
	}
	return s.pool, nil
}

// creationTimeout bounds the making of a sandbox. The first of a language may have to pull
// an image or compile a standard library; a caller that has no time for it cancels its call.
const creationTimeout = 10 * time.Minute

// pool is how many sandboxes are kept, and of which languages. Those in use are bounded
// before they are asked for, so that there is always room for them.
func (c Config) pool() pool.Config {
	p := pool.Config{Options: c.Sandbox, Max: c.MaxCalls, AcquireTimeout: creationTimeout, Prepare: true, Zygote: c.Zygote}
	p.Options.Policy = llmsandbox.Policy{}
	if c.Warm < 0 {
		p.NoPrewarm = true
		return p
	}
	for _, language := range c.WarmLanguages {
		p.Keys = append(p.Keys, c.key(language))
	}
	if len(p.Keys) == 0 {
		p.NoPrewarm = true
		return p
	}
	p.Min = c.Warm
	p.Max += p.Min * len(p.Keys)
	return p
}

func (c Config) key(language string) pool.Key {
	return pool.Key{Language: language, Image: c.Images[language], Environment: c.environment(language)}
}

// environment is the one of a language's sandboxes. Only Python has environments; other languages
// get it where they share Python's root filesystem, since their programs can start Python.
func (c Config) environment(language string) string {
	own, python := cmp.Or(c.Images[language], c.Sandbox.Image), cmp.Or(c.Images[preferred], c.Sandbox.Image)
	local := c.Sandbox.Backend == nil || c.Sandbox.Backend.Name() == "local"
	if language == preferred || own == python && (own != "" || local) {
		return c.Sandbox.Environment
	}
	return ""
}

// acquire returns a sandbox that has not been used, for a program that the policy lets pass.
// It goes, with all that is in it, when it is released. While all places are taken, users get one in turn.
func (s *sandboxes) acquire(ctx context.Context, user, language string, libraries []string, steps *progress) (sb *llmsandbox.Sandbox, release func(), err error) {
	leave, err := s.places.Enter(ctx, user)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			leave()
		}
	}()
	if len(libraries) > 0 {
		o := s.options(language, libraries)
		o.Policy, o.Progress = llmsandbox.Policy{}, steps.tell
		if sb, err = llmsandbox.Open(ctx, &o); err != nil {
			return nil, nil, err
		}
		return sb, func() { s.remove(sb); leave() }, nil
	}
	p, err := s.warm()
	if err != nil {
		return nil, nil, err
	}
	lease, err := p.Acquire(ctx, &pool.AcquireOptions{Key: s.cfg.key(language)})
	if err != nil {
		return nil, nil, err
	}
	return lease.Sandbox(), func() { lease.Release(); leave() }, nil
}

// options are those of a sandbox that is opened for one call or session.
func (s *sandboxes) options(language string, libraries []string) llmsandbox.Options {
	o := s.cfg.Sandbox
	if language == cmp.Or(o.Language, llmsandbox.DefaultLanguage) {
		libraries = slices.Concat(o.Libraries, libraries)
	} else {
		o.Imports = nil
	}
	o.Language, o.Libraries, o.Environment = language, libraries, s.cfg.environment(language)
	if image := s.cfg.Images[language]; image != "" {
		o.Image = image
	}
	return o
}

// remove ends a sandbox. What cannot be removed now, the backend's garbage collection finds.
func (s *sandboxes) remove(sb *llmsandbox.Sandbox) {
	if err := sb.Close(); err != nil {
		s.cfg.Log.Error("a sandbox could not be removed", "sandbox", sb.ID(), "error", err)
	}
}

// close takes no more calls and removes the pool's sandboxes.
func (s *sandboxes) close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	p := s.pool
	s.mu.Unlock()
	if p == nil {
		return nil
	}
	if err := p.Close(ctx); err != nil {
		return fmt.Errorf("close the pool: %w", err)
	}
	return nil
}
