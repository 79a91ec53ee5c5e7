package baseline

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agentclient"
	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// maxTreeEntries bounds what a sandbox may hold from the beginning in what code can write.
const maxTreeEntries = 1000

// A tree is what code can write to: directories, in which there is nothing but directories.
type tree struct {
	roots []string
	// directories are all of them, the roots as well, by their path.
	dirs map[string]agentproto.FileInfo
	// mounted are the paths of other mounts, whose content is not part of it.
	mounted map[string]bool
	// kept are those of them that are left as they are, not even their own mode is looked at.
	kept []string
}

// newTree looks for what code can write to. It fails with backend.ErrUnsupported when there is more
// than empty directories in it.
func newTree(ctx context.Context, client *agentclient.Client, all []mount, kept []string) (tree, error) {
	t := tree{dirs: map[string]agentproto.FileInfo{}, mounted: map[string]bool{}, kept: kept}
	for _, m := range all {
		t.mounted[m.path] = true
	}
	uid := client.Info().CodeUID
	for _, m := range all {
		if m.keepsNothing() || slices.Contains(kept, m.path) {
			continue
		}
		if m.path == "/" || uid == 0 {
			return t, fmt.Errorf("%w: code can write to its root file system", backend.ErrUnsupported)
		}
		top, err := client.Stat(ctx, m.path)
		if errors.Is(err, fs.ErrPermission) && client.Info().AgentUID == uid && !around(all, m).writable {
			// Code has no more rights than the agent, and the directory in the way can never
			// get another mode.
			continue
		}
		if err != nil {
			return t, err
		}
		if top.Type == agentproto.TypeDir && writableBy(client, top) {
			t.roots = append(t.roots, m.path)
			if err := t.look(ctx, client, m.path, top, t.dirs, true); err != nil {
				return t, err
			}
			continue
		}
		if err := t.look(ctx, client, m.path, top, map[string]agentproto.FileInfo{}, false); err != nil {
			return t, err
		}
	}
	return t, nil
}

// writableBy tells whether code can write to a file or directory. Devices keep nothing.
func writableBy(client *agentclient.Client, f agentproto.FileInfo) bool {
	if f.Type != agentproto.TypeDir && f.Type != agentproto.TypeRegular {
		return false
	}
	id := client.Info()
	return f.UID == id.CodeUID || f.Mode&0o002 != 0 || f.GID == id.CodeGID && f.Mode&0o020 != 0
}

// look goes through what is at a path, which is info. In what is a root's there may be only
// directories, and they are found; elsewhere nothing that code can write to.
func (t *tree) look(ctx context.Context, client *agentclient.Client, at string, info agentproto.FileInfo, found map[string]agentproto.FileInfo, root bool) error {
	switch {
	case !root && writableBy(client, info):
		return fmt.Errorf("%w: code can write to %q, beside files that it cannot", backend.ErrUnsupported, at)
	case root && info.Type != agentproto.TypeDir:
		return fmt.Errorf("%w: there is a file %q from the beginning, which code may change", backend.ErrUnsupported, at)
	case len(found) >= maxTreeEntries:
		return fmt.Errorf("%w: there are more than %d files and folders where code can write", backend.ErrUnsupported, maxTreeEntries)
	}
	info.Name, info.Size, info.MTimeMicros = "", 0, 0
	found[at] = info
	if info.Type != agentproto.TypeDir {
		return nil
	}
	list, err := client.List(ctx, at)
	if err != nil {
		return err
	}
	if list.Truncated {
		return fmt.Errorf("%w: folder %q has too many files to be looked at", backend.ErrUnsupported, at)
	}
	for _, f := range list.Files {
		below := path.Join(at, f.Name)
		if t.mounted[below] && (!root || slices.Contains(t.kept, below)) {
			continue // a mount of its own
		}
		if t.mounted[below] {
			f.Size, f.MTimeMicros, f.Name = 0, 0, ""
			found[below] = f
			continue
		}
		if err := t.look(ctx, client, below, f, found, root); err != nil {
			return err
		}
	}
	return nil
}

// restore removes from the roots what was not there, and makes directories as they were.
func (t *tree) restore(ctx context.Context, client *agentclient.Client) error {
	for _, root := range t.roots {
		if err := t.restoreDir(ctx, client, root); err != nil {
			return fmt.Errorf("empty its folder %s: %w", root, err)
		}
	}
	return nil
}

func (t *tree) restoreDir(ctx context.Context, client *agentclient.Client, at string) error {
	was := t.dirs[at]
	if now, err := client.Stat(ctx, at); err != nil {
		return err
	} else if now.Mode != was.Mode {
		if err := client.Chmod(ctx, at, was.Mode&0o777); err != nil {
			return err
		}
	}
	// Code may have made more than one listing tells of.
	for {
		list, err := client.List(ctx, at)
		if err != nil {
			return err
		}
		for _, f := range list.Files {
			below := path.Join(at, f.Name)
			if _, kept := t.dirs[below]; t.mounted[below] || kept && f.Type == agentproto.TypeDir {
				continue
			}
			if err := client.Remove(ctx, below, agentclient.RemoveOptions{Recursive: true, Missing: true}); err != nil {
				return err
			}
		}
		if !list.Truncated {
			break
		}
	}
	for below, was := range t.dirs {
		if path.Dir(below) != at || below == at || t.mounted[below] {
			continue
		}
		if err := client.Mkdir(ctx, below, was.Mode, true); err != nil {
			return err
		}
		if err := t.restoreDir(ctx, client, below); err != nil {
			return err
		}
	}
	return nil
}

// verify looks whether the roots are what they were.
func (t *tree) verify(ctx context.Context, client *agentclient.Client) error {
	now := map[string]agentproto.FileInfo{}
	for _, root := range t.roots {
		top, err := client.Stat(ctx, root)
		if err == nil {
			err = t.look(ctx, client, root, top, now, true)
		}
		if err != nil {
			return err
		}
	}
	for at, was := range t.dirs {
		if is, there := now[at]; !there || is != was {
			return fmt.Errorf("folder %q is not as it was: mode %o of user %d, and %o of %d at first", at, is.Mode, is.UID, was.Mode, was.UID)
		}
		delete(now, at)
	}
	for at := range now {
		return fmt.Errorf("folder %q was not there at first", at)
	}
	return nil
}
