package llmsandbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/llmsandbox/llmsandbox/internal/agentclient"
)

// Reset makes a sandbox that was opened with Options.Resettable as it was then: everything
// that runs in it is killed, its kernels are closed, its files, installed libraries,
// artifacts and network are those of Open. Then it looks whether that is so. Nobody may use
// the sandbox meanwhile.
//
// An error says that it is not known to be as new, and that it must be closed. So it is
// with ErrUnsupported where that cannot be told: what code can write to held files from the
// beginning, such as a compiler's cache or an image's working folder.
func (s *Sandbox) Reset(ctx context.Context) error {
	if err := s.reset(ctx); err != nil {
		return fmt.Errorf("reset sandbox %s: %w", s.ID(), s.explain(ctx, err))
	}
	return nil
}

func (s *Sandbox) reset(ctx context.Context) error {
	if err := s.alive(); err != nil {
		return err
	}
	m := s.made
	if m == nil {
		return fmt.Errorf("%w: it was not opened with Options.Resettable, so what it was like is not known", ErrInvalid)
	}
	if m.unknown != nil {
		return m.unknown
	}
	s.net.mu.Lock()
	defer s.net.mu.Unlock()
	s.stopNetwork()
	if err := s.kernels.closeOpen(); err != nil {
		return fmt.Errorf("close its kernels: %w", err)
	}
	s.dropAhead(ctx)
	client, err := s.link.get(ctx)
	if err != nil {
		return err
	}
	if err := killAll(ctx, client); err != nil {
		return err
	}
	if err := processesGone(ctx, client); err != nil {
		return err
	}
	if err := m.tree.restore(ctx, client); err != nil {
		return err
	}
	if err := s.restoreSticky(ctx, client); err != nil {
		return err
	}
	now, err := s.surroundings(ctx)
	if err != nil {
		return err
	}
	if now != m.surroundings {
		return errors.New("mounts or shared memory, queues or semaphores are not as they were")
	}
	if err := processesGone(ctx, client); err != nil {
		return err
	}
	if err := m.tree.verify(ctx, client); err != nil {
		return err
	}
	s.ClearArtifacts()
	s.libraries.forget(m.libraries)
	plan, err := planNetwork(m.network, s.net.secrets, s.net.log)
	if err != nil || plan == nil {
		return err
	}
	return s.startNetwork(ctx, plan)
}

// restoreSticky gives folders the bit of their mode that the agent does not set. It comes
// when there is no program left of the code's that could take chmod's place.
func (s *Sandbox) restoreSticky(ctx context.Context, client *agentclient.Client) error {
	for _, root := range s.made.tree.roots {
		was := s.made.tree.folders[root].Mode
		now, err := client.Stat(ctx, root)
		if err != nil {
			return err
		}
		if now.Mode == was {
			continue
		}
		res, err := s.Exec(ctx, []string{"chmod", fmt.Sprintf("%04o", was), root}, &ExecOptions{Dir: "/", Timeout: surroundingsTime})
		if err != nil {
			return err
		}
		if !res.OK() {
			return fmt.Errorf("give its folder %s its mode: chmod ended with status %s", root, res.Status)
		}
	}
	return nil
}
