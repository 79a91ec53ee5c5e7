package layers

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agentclient"
	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/language/registries"
)

const (
	// keptDir is below a working directory whose files are kept. It has a directory for each list of libraries,
	// and beside each that is complete an empty file of its name with keptMark.
	keptDir  = ".llmsandbox/lib"
	keptMark = ".installed"
	// keptUnique is how much of a library directory's name is another one for each installation, in bytes:
	// two sandboxes may install at the same time, and one that was killed leaves a part.
	keptUnique = 4
)

// KeepIn says that libraries are installed below a working directory whose files are kept. There may be some already.
func (l *Installed) KeepIn(dir string) { l.kept = path.Join(dir, keptDir) }

// installKept installs libraries where they are used, unless they are there.
func (l *Installed) installKept(ctx context.Context, q *Libraries) error {
	local, err := q.digestLocal(ctx)
	if err != nil {
		return err
	}
	if err := l.adding.Lock(ctx); err != nil {
		return err
	}
	defer l.adding.Unlock()
	l.mu.Lock()
	l.known = false // another sandbox may have installed them
	l.mu.Unlock()
	have, err := l.all(ctx)
	if err != nil {
		return err
	}
	key := q.key("", local)
	list := path.Join(l.kept, key[:len(key)-2*keptUnique])
	if slices.ContainsFunc(have, func(dir string) bool { return strings.HasPrefix(dir, list) }) {
		return nil
	}
	if err := l.room(have); err != nil {
		return err
	}
	if q.options.Offline && q.options.Local == "" {
		return q.fail(errNotCached)
	}
	unique := make([]byte, keptUnique)
	rand.Read(unique) // never fails
	dir := list + hex.EncodeToString(unique)
	end := backend.BeginStep(q.spec.Progress, stageInstall, q.title())
	err = q.inSandbox(ctx, job{dir: dir, stage: stageInstall, plan: q.language.Libraries.Install, done: func(ctx context.Context, s Sandbox, _ string) error {
		client, err := s.Client(ctx)
		if err == nil {
			_, err = client.WriteFile(ctx, dir+keptMark, strings.NewReader(""), agentclient.WriteOptions{Mode: 0o644, Create: true})
		}
		return err
	}})
	end(err)
	if err != nil {
		return errors.Join(err, l.removeKept(context.WithoutCancel(ctx), dir))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dirs = append([]string{dir}, l.dirs...)
	return nil
}

// removeKept removes a part of libraries.
func (l *Installed) removeKept(ctx context.Context, dir string) error {
	client, err := l.link.Client(ctx)
	if err == nil {
		err = client.Remove(ctx, dir, agentclient.RemoveOptions{Recursive: true, Missing: true})
	}
	if err != nil {
		return fmt.Errorf("remove %s, which is not complete: %w", dir, l.link.Explain(ctx, err))
	}
	return nil
}

// settleIn has a plan keep the files about registries in a sandbox's directory for temporary files, which is
// not /tmp in a container that others use.
func settleIn(tempDir string, plan language.Plan) language.Plan {
	return relocate(plan, registries.Dir, path.Join(tempDir, path.Base(registries.Dir)))
}

// relocate returns a plan that has another directory in the place of one.
func relocate(plan language.Plan, from, to string) language.Plan {
	if from == to {
		return plan
	}
	settle := func(s string) string { return strings.ReplaceAll(s, from, to) }
	plan.Files, plan.Steps = slices.Clone(plan.Files), slices.Clone(plan.Steps)
	for i, f := range plan.Files {
		plan.Files[i].Path, plan.Files[i].Data = settle(f.Path), []byte(settle(string(f.Data)))
	}
	for i, s := range plan.Steps {
		s.Argv, s.Env = slices.Clone(s.Argv), slices.Clone(s.Env)
		for _, list := range [][]string{s.Argv, s.Env} {
			for j, word := range list {
				list[j] = settle(word)
			}
		}
		plan.Steps[i] = s
	}
	return plan
}
