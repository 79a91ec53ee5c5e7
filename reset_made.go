package llmsandbox

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// made is what a sandbox was like before any code has run in it.
type made struct {
	unknown      error // why that cannot be told
	network      Network
	libraries    []string
	surroundings string
	tree         tree
}

// remember looks at a sandbox that was just opened, before it has a network, whose files
// are made anew.
func (s *Sandbox) remember(ctx context.Context, network Network) *made {
	m := &made{network: network, libraries: slices.Clone(s.libraries.dirs)}
	m.unknown = func() (err error) {
		if m.surroundings, err = s.surroundings(ctx); err != nil {
			return err
		}
		client, err := s.link.get(ctx)
		if err != nil {
			return err
		}
		m.tree, err = newTree(ctx, client, mounts(m.surroundings))
		if err != nil {
			return err
		}
		return processesGone(ctx, client)
	}()
	return m
}

// surroundingsTime bounds the look at them.
const surroundingsTime = 10 * time.Second

// surroundings are the mounts, and what processes share that outlives them, as a program of
// the read-only root tells.
func (s *Sandbox) surroundings(ctx context.Context) (string, error) {
	argv := []string{"cat", "/proc/self/mounts", "/proc/sysvipc/shm", "/proc/sysvipc/msg", "/proc/sysvipc/sem"}
	res, err := s.Exec(ctx, argv, &ExecOptions{Dir: "/", Timeout: surroundingsTime})
	if err != nil {
		return "", fmt.Errorf("look at its mounts: %w", err)
	}
	if !res.OK() {
		return "", fmt.Errorf("look at its mounts: cat ended with status %s: %w", res.Status, ErrUnsupported)
	}
	return string(res.Stdout), nil
}

// A mount is what is to be seen at a path.
type mount struct {
	path, kind string
	writable   bool
}

// mounts reads lines of /proc/self/mounts; what is none is left out. Where several are at a
// path the last is seen. Paths with blanks keep their escapes and so lead nowhere, which is
// an error when they are looked at.
func mounts(lines string) []mount {
	seen := map[string]mount{}
	for line := range strings.Lines(lines) {
		fields := strings.Fields(line)
		if len(fields) < 4 || !path.IsAbs(fields[1]) {
			continue
		}
		options := strings.Split(fields[3], ",")
		seen[fields[1]] = mount{path: fields[1], kind: fields[2], writable: slices.Contains(options, "rw")}
	}
	all := make([]mount, 0, len(seen))
	for _, m := range seen {
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b mount) int { return strings.Compare(a.path, b.path) })
	return all
}

// keepsNothing tells whether what code writes there is gone with its processes.
func (m mount) keepsNothing() bool {
	return !m.writable || m.kind == "devpts" || m.kind == "proc" || strings.HasPrefix(m.path, "/proc/")
}

// around is the mount among all that another one's path is in; none for the root.
func around(all []mount, inner mount) mount {
	var outer mount
	for _, m := range all {
		if m.path != inner.path && strings.HasPrefix(inner.path, strings.TrimSuffix(m.path, "/")+"/") && len(m.path) > len(outer.path) {
			outer = m
		}
	}
	return outer
}

// collected tells whether the agent knows no more of a process because all of it is over.
func collected(err error) bool {
	var ae *agentproto.Error
	return errors.As(err, &ae) && ae.Code == agentproto.CodeLost
}
