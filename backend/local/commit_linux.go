package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agentclient"
	"github.com/llmsandbox/llmsandbox/internal/ociimage"
)

// Commit implements backend.Machine.
func (m *machine) Commit(ctx context.Context, file, overwrite string, files io.Reader) (string, []string, error) {
	return m.commit(ctx, m.Dial, file, overwrite, files)
}

// Commit implements backend.Machine.
func (a *attached) Commit(ctx context.Context, file, overwrite string, files io.Reader) (string, []string, error) {
	return a.commit(ctx, a.Dial, file, overwrite, files)
}

// commit writes the image to a file.
func (d *description) commit(ctx context.Context, dial dialer, file, overwrite string, files io.Reader) (string, []string, error) {
	if err := d.checkCommit(file, overwrite); err != nil {
		return "", nil, err
	}
	base, err := d.base(ctx)
	if err != nil {
		return "", nil, err
	}
	defer base.Close()
	layer, err := ociimage.NewLayer(filepath.Dir(file))
	if err != nil {
		return "", nil, err
	}
	defer layer.Close()
	if err := d.fillLayer(ctx, dial, layer, files); err != nil {
		return "", nil, err
	}
	id, err := base.WriteFile(ctx, file, overwrite != "", layer, d.record.Guest.Workdir)
	if err != nil {
		return "", nil, err
	}
	return id.String(), layer.Skipped, nil
}

func (d *description) checkCommit(file, overwrite string) error {
	if d.record.Capabilities.Isolation == isolationProcess {
		return fmt.Errorf("an image of sandbox %s: %w: with the isolation process it has no root file system: copy its files out, or use the isolation namespace", d.ID(), backend.ErrUnsupported)
	}
	if d.record.Base.ID == "" && d.record.Tree == nil {
		return fmt.Errorf("%w: an earlier version has opened the sandbox, which did not note its image", backend.ErrUnsupported)
	}
	return ociimage.CheckFile(file, overwrite)
}

// fillLayer adds what was written to the root, and the working directory.
func (d *description) fillLayer(ctx context.Context, dial dialer, layer *ociimage.Layer, files io.Reader) error {
	workdir := d.record.Guest.Workdir
	layer.MaxBytes = d.record.Info.Limits.Disk
	var left []string
	if d.record.WritableRoot {
		err := withAgent(ctx, dial, func(agent *agentclient.Client) error {
			layer.Deletions = true
			return agentclient.Pipe(func(w io.Writer) error {
				result, err := agent.TarLayer(ctx, w)
				left = result.Skipped
				return err
			}, func(r io.Reader) error { return layer.Add(ctx, r, "/") })
		})
		if err != nil {
			return fmt.Errorf("read what was written to the root file system: %w", err)
		}
	}
	if d.mountsWorkdir() {
		layer.Deletions, layer.UID, layer.GID = false, codeID, codeID
		if err := layer.Add(ctx, files, workdir); err != nil {
			return fmt.Errorf("read the working directory: %w", err)
		}
		layer.Replace(workdir)
	}
	layer.Skipped = append(left, layer.Skipped...)
	return nil
}

// mountsWorkdir reports whether the working directory is none of the root's own.
func (d *description) mountsWorkdir() bool {
	return d.record.Guest.Workdir == defaultWorkdir || !d.record.WritableRoot
}

// restoreWorkdir puts what an image made of a sandbox has of its working directory into this one's, which hides it.
func (m *machine) restoreWorkdir(ctx context.Context, img *ociimage.Image) error {
	from := img.Config.Labels[ociimage.CommittedLabel]
	if from == "" || from == m.record.Guest.Workdir && !m.mountsWorkdir() {
		return nil
	}
	err := withAgent(ctx, m.Dial, func(agent *agentclient.Client) error {
		return agentclient.Pipe(func(w io.Writer) error { return img.WriteTree(ctx, from, w) }, func(r io.Reader) error {
			result, err := agent.TarIn(ctx, m.record.Guest.Workdir, r, agentclient.TarLimits{Links: true})
			if err == nil && len(result.Skipped) > 0 {
				err = errors.New(result.Skipped[0])
			}
			return err
		})
	})
	if err != nil {
		return fmt.Errorf("put the image's working directory into the sandbox: %w", err)
	}
	return nil
}
