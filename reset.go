package llmsandbox

import (
	"context"
	"fmt"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/baseline"
	"github.com/llmsandbox/llmsandbox/internal/renewed"
)

// Reset makes a sandbox that was opened with Options.Resettable as it was then: everything
// that runs in it is killed, its kernels are closed, its files, installed libraries,
// artifacts and network are those of Open. What is in volumes stays. Then it looks whether that is so. Nothing may use
// the sandbox meanwhile.
//
// With WritableRoot or User, the sandbox is ended and created again under its ID, of the same image and
// mounts: this takes as long as Open, what it has used is counted anew, and other handles on it have ended.
//
// An error says that it is not known to be as new, and that it must be closed. So it is
// with ErrUnsupported where that cannot be known: what code can write to held files from the
// beginning, such as a compiler's cache or an image's working directory.
func (s *Sandbox) Reset(ctx context.Context) error {
	err := s.reset(ctx)
	if err == nil && len(s.imports) > 0 {
		err = s.Prepare(ctx)
	}
	if err != nil {
		return fmt.Errorf("reset sandbox %s: %w", s.ID(), s.link.Explain(ctx, err))
	}
	return nil
}

// made is what a sandbox was like before any code has run in it.
type made struct {
	baseline *baseline.Baseline
	unknown  error // why there is no baseline
	network  Network
	// renewer creates the sandbox again, as code can change too much of it to make it as it was; nil: it can not.
	renewer backend.Renewer
}

// remember looks at a sandbox that was just opened, before it has a network, whose files
// are made anew.
func (s *Sandbox) remember(ctx context.Context, network Network) *made {
	m := &made{network: network}
	whole, err := s.forBaseline(ctx)
	if err == nil {
		m.baseline, err = baseline.Take(ctx, whole)
	}
	m.unknown = err
	return m
}

func (s *Sandbox) forBaseline(ctx context.Context) (baseline.Sandbox, error) {
	client, err := s.link.Client(ctx)
	var volumes []string
	for _, v := range s.machine.Info().Volumes {
		volumes = append(volumes, v.Target)
	}
	return baseline.Sandbox{Client: client, Volumes: volumes, Exec: func(ctx context.Context, timeout time.Duration, argv ...string) (output, failed string, err error) {
		res, err := s.Exec(ctx, argv, &ExecOptions{Dir: "/", Timeout: timeout})
		if err != nil {
			return "", "", err
		}
		if !res.OK() {
			failed = string(res.Status)
		}
		return res.Stdout, failed, nil
	}}, err
}

func (s *Sandbox) reset(ctx context.Context) error {
	if err := s.link.Alive(); err != nil {
		return err
	}
	if s.made == nil && s.supervisor != nil {
		return s.resetSupervised(ctx)
	}
	m := s.made
	if m == nil {
		return fmt.Errorf("%w: it was not opened with Options.Resettable, or has another owner by now, so what it was like is not known", ErrInvalid)
	}
	if m.unknown != nil {
		return m.unknown
	}
	s.net.mu.Lock()
	defer s.net.mu.Unlock()
	s.net.Stop()
	s.kernels.CloseOpen()
	s.dropAhead(ctx)
	if err := m.restore(ctx, s); err != nil {
		return err
	}
	s.ClearArtifacts()
	s.libraries.Forget()
	network := m.network
	network.imagePackages = s.net.imagePackages
	plan, err := planNetwork(network, s.net.secrets, s.net.Log)
	if err != nil {
		return err
	}
	return s.startNetwork(ctx, plan, network.Allow)
}

// restore makes the sandbox's processes, files and mounts those of Open.
func (m *made) restore(ctx context.Context, s *Sandbox) error {
	if m.renewer != nil {
		return s.replace(func(old backend.Machine) (backend.Machine, error) { return m.renewer.Renew(ctx, old) })
	}
	whole, err := s.forBaseline(ctx)
	if err != nil {
		return err
	}
	return m.baseline.Restore(ctx, whole)
}

// replace has another machine come in the place of the one that the sandbox is.
func (s *Sandbox) replace(by func(old backend.Machine) (backend.Machine, error)) error {
	s.link.Drop()
	err := s.machine.(*renewed.Machine).Replace(by)
	if err == nil {
		s.link.Begin()
	}
	return err
}
