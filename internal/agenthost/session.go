package agenthost

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agentclient"
	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

const (
	// removeTimeout bounds the removal of a sandbox whose caller gave no bound.
	removeTimeout = 60 * time.Second
	// firstAge is how old the first stream may be when it is used: an agent ends those over
	// which it has not been greeted for half a minute.
	firstAge = 10 * time.Second
	// listenTries is how often an agent is called that does not listen yet: its container runs
	// from the moment its program is started.
	listenTries = 20
)

// A Role is what the end of a handle means for its sandbox.
type Role int

const (
	Owner    Role = iota // the sandbox ends, and is removed
	Attached             // the sandbox lives on
	Entered              // the agent ends; the container that it was brought into lives on
)

// A Session is one handle on a sandbox. It implements backend.Machine.
type Session struct {
	Description
	role    Role
	host    Host
	serving bool // in an entered host: there is an agent to end

	over  context.Context // it ends with the sandbox, or with this handle
	end   context.CancelFunc
	watch context.Context // it ends with this handle
	stop  context.CancelFunc

	mu        sync.Mutex // also of the deadline in the description
	first     Stream     // used by the first Dial
	made      time.Time
	following bool
	closing   bool
	idle      sync.WaitGroup // for what follows the host
	released  sync.Once

	removal sync.Mutex
	removed bool
}

var _ backend.Machine = (*Session)(nil)

// New returns a session, which is to be closed. Its description may be completed as long as
// the session is in no other hands.
func New(role Role, host Host, d Description) *Session {
	s := &Session{Description: d, role: role, host: host}
	s.over, s.end = context.WithCancel(context.Background())
	s.watch, s.stop = context.WithCancel(context.Background())
	return s
}

// Host is what it is a handle on.
func (s *Session) Host() Host { return s.host }

// Follow has the end of the sandbox noticed from now on.
func (s *Session) Follow() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.following || s.closing {
		return
	}
	s.following = true
	s.idle.Go(func() {
		ended := s.host.Await(s.watch)
		s.mu.Lock()
		s.following = false
		remove := s.role == Owner && !s.closing
		s.mu.Unlock()
		if !ended {
			return
		}
		s.end()
		if remove {
			ctx, cancel := context.WithTimeout(context.Background(), removeTimeout)
			defer cancel()
			_ = s.remove(ctx, false) // Close tries again, and returns why it fails
		}
	})
}

// Offer gives the session a stream for the first Dial.
func (s *Session) Offer(first Stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.first, s.made = first, time.Now()
}

// take returns the stream that was offered, or nil, and how long ago that was.
func (s *Session) take() (Stream, time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := s.first
	s.first = nil
	return first, time.Since(s.made)
}

// Dial opens a stream to the agent, or returns the one that was offered.
func (s *Session) Dial(ctx context.Context) (io.ReadWriteCloser, error) {
	first, age := s.take()
	if first != nil && age < firstAge {
		return first, nil
	}
	if first != nil {
		_ = first.Close() // it was not used
	}
	return s.Connect(ctx)
}

// errEnded is the cause of the end of what waits for a sandbox that has ended.
var errEnded = errors.New("the sandbox has ended")

// Connect opens a stream to the agent.
func (s *Session) Connect(ctx context.Context) (Stream, error) {
	if s.over.Err() != nil {
		return nil, s.ended()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.over, func() { cancel(errEnded) })()
	stream, err := s.host.Connect(ctx)
	if errors.Is(err, ErrGone) {
		s.end()
	}
	switch {
	case err == nil:
		s.Follow() // it may have lost sight of the host, which can be reached again
		return stream, nil
	case s.over.Err() != nil:
		return nil, s.ended()
	}
	return nil, err
}

// WithAgent calls do with a connection of its own.
func (s *Session) WithAgent(ctx context.Context, do func(*agentclient.Client) error) error {
	stream, err := s.Connect(ctx)
	if err != nil {
		return err
	}
	a, err := agentclient.Connect(ctx, stream)
	if err != nil {
		return Saying(fmt.Errorf("connect to the agent: %w", err), stream)
	}
	return errors.Join(do(a), a.Close())
}

// Saying adds to an error what came on a stream's stderr.
func Saying(err error, s Stream) error {
	if said := strings.TrimSpace(s.Said()); said != "" {
		return fmt.Errorf("%w: it said %q", err, said)
	}
	return err
}

// Done is closed when the sandbox has ended, or this handle was closed.
func (s *Session) Done() <-chan struct{} { return s.over.Done() }

// End returns how the sandbox has ended.
func (s *Session) End() backend.End {
	if s.over.Err() == nil {
		return backend.End{}
	}
	end, code := s.host.End()
	if reason := agentproto.End(code).Reason(s.Sandbox.IdleTimeout); reason != "" && s.role != Entered {
		end.Reason = reason // the container's main process is the agent, which ended by itself
	}
	return end
}

// ended is the error of a use of the sandbox after its end.
func (s *Session) ended() error {
	why := ErrGone.Error()
	if s.watch.Err() != nil {
		why = "this handle was closed"
	}
	return fmt.Errorf("sandbox %s has ended: %s: %w", s.ID(), cmp.Or(s.End().Reason, why), backend.ErrNotFound)
}

// Info describes the sandbox as far as this handle knows.
func (s *Session) Info() backend.Info {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Sandbox
}

// SetDeadline moves the deadline of the agent and of the host's record of it.
func (s *Session) SetDeadline(ctx context.Context, at time.Time) error {
	record := func(ctx context.Context, at time.Time, agentHas bool) error {
		if s.role == Entered {
			return nil // nothing else knows of it
		}
		info := s.Info()
		info.Deadline = at
		return s.host.RecordDeadline(ctx, info, agentHas)
	}
	if err := record(ctx, at, false); err != nil {
		return err
	}
	var err error
	for range listenTries {
		err = s.WithAgent(ctx, func(a *agentclient.Client) error {
			return a.MoveDeadline(ctx, at, func(ctx context.Context, at time.Time) error {
				if err := record(ctx, at, true); err != nil {
					return err
				}
				s.mu.Lock()
				defer s.mu.Unlock()
				s.Sandbox.Deadline = at
				return nil
			})
		})
		if err == nil || ctx.Err() != nil || s.over.Err() != nil || !strings.Contains(err.Error(), "connection refused") {
			break
		}
	}
	return err
}

// OOMKills is not known: the agent reports it with the end of each program.
func (s *Session) OOMKills(context.Context) (int64, bool) { return 0, false }

// Usage returns what the sandbox uses.
func (s *Session) Usage(ctx context.Context) (backend.Usage, error) {
	if s.over.Err() != nil {
		return backend.Usage{}, s.ended()
	}
	u, err := s.host.Usage(ctx)
	if errors.Is(err, ErrGone) {
		s.end()
		err = s.ended()
	}
	return u, err
}

// Commit makes an image of the sandbox.
func (s *Session) Commit(ctx context.Context, tag, overwrite string, files io.Reader) (id string, skipped []string, err error) {
	return s.host.Commit(ctx, tag, overwrite, files)
}

// Close ends the handle, and with it what its role says.
func (s *Session) Close(endAgent func() bool) error {
	switch s.role {
	case Attached:
		s.release()
		return nil
	case Entered:
		ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
		defer cancel()
		return s.leave(ctx)
	}
	s.mu.Lock()
	s.closing = true // before the agent ends: that end needs no removal beside this one
	s.mu.Unlock()
	ended := endAgent != nil && s.over.Err() == nil && endAgent()
	s.release()
	ctx, cancel := context.WithTimeout(context.Background(), removeTimeout)
	defer cancel()
	return s.remove(ctx, ended)
}

// Destroy ends the sandbox, whichever handle owns it, without asking its agent.
func (s *Session) Destroy(ctx context.Context) error {
	if s.role == Entered {
		return s.leave(ctx)
	}
	s.release()
	return s.remove(ctx, false)
}

// release gives up what this handle holds.
func (s *Session) release() {
	s.mu.Lock()
	s.closing = true
	s.mu.Unlock()
	if first, _ := s.take(); first != nil {
		_ = first.Close() // it was not used
	}
	s.stop()
	s.end()
	s.idle.Wait()
	s.released.Do(s.host.Release)
}

// remove removes the sandbox, once, but tries again what has failed.
func (s *Session) remove(ctx context.Context, agentEnded bool) error {
	s.removal.Lock()
	defer s.removal.Unlock()
	if s.removed {
		return nil
	}
	err := s.host.Remove(ctx, agentEnded)
	s.removed = err == nil
	return err
}

// leaveTimeout bounds the end of an agent whose caller gave no bound.
const leaveTimeout = 20 * time.Second

// Settle gives the guest of a sandbox a directory of its own, which it returns, beside that of the agent, which is the path
// of its file. It is the working directory unless the files of another one are kept.
func Settle(g *backend.Guest, agent string, spec backend.Spec) (own string) {
	own = path.Join(path.Dir(path.Dir(agent)), "sandbox-"+spec.ID)
	g.TempDir = path.Join(own, ".tmp")
	if !spec.KeepFiles {
		g.Workdir = own
	}
	return own
}

// own is the directory of the sandbox alone, in a host that was entered.
func (s *Session) own() string { return path.Dir(s.Inside.TempDir) }

// Enter takes the standard streams of an agent that was just started in the host, sends it
// hello, and waits until it speaks: by then it listens. Then it makes the sandbox's
// directories.
func (s *Session) Enter(ctx context.Context, stdio Stream, hello string) error {
	first := &unreadStream{Stream: stdio, in: bufio.NewReader(stdio)}
	s.Offer(first)
	s.Follow()
	if err := first.spoken(ctx, hello); err != nil {
		return Saying(fmt.Errorf("start the agent in the container: %w", err), first)
	}
	s.serving = true
	return s.WithAgent(ctx, func(a *agentclient.Client) error {
		for _, dir := range []string{s.own(), s.Inside.TempDir} {
			if err := a.Mkdir(ctx, dir, 0o700, true); err != nil {
				return fmt.Errorf("make a working directory in the container: %w", err)
			}
		}
		if err := a.Mkdir(ctx, s.Inside.Workdir, 0o755, true); err != nil { // it is there unless it is to be kept
			return fmt.Errorf("make the working directory %s in the container, whose user needs to be able to: %w", s.Inside.Workdir, err)
		}
		return nil
	})
}

// leave removes the sandbox's own directory and ends the agent with all that was started through
// it. It returns when the agent has ended. The container stays as it is.
func (s *Session) leave(ctx context.Context) error {
	defer s.release()
	if s.over.Err() != nil || !s.serving {
		return nil
	}
	return s.WithAgent(ctx, func(a *agentclient.Client) error {
		err := a.Remove(ctx, s.own(), agentclient.RemoveOptions{Recursive: true, Missing: true})
		if err := errors.Join(err, a.Shutdown(ctx)); err != nil {
			return err
		}
		select {
		case <-a.Done(): // its stream ends when it has
			return nil
		case <-ctx.Done():
			return fmt.Errorf("the agent in the container does not end: %w", context.Cause(ctx))
		}
	})
}

// An unreadStream can be looked at before it is read.
type unreadStream struct {
	Stream
	in *bufio.Reader
}

func (s *unreadStream) Read(p []byte) (int, error) { return s.in.Read(p) }

// spoken sends hello and waits until there is something to read, which it leaves there. The
// stream is closed when the context ends before that.
func (s *unreadStream) spoken(ctx context.Context, hello string) error {
	stop := context.AfterFunc(ctx, func() { _ = s.Close() })
	var err error
	if hello != "" {
		_, err = io.WriteString(s, hello)
	}
	if err == nil {
		_, err = s.in.Peek(1)
	}
	if !stop() {
		return errors.Join(context.Cause(ctx), err)
	}
	return err
}
