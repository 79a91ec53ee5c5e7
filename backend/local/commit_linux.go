package local

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
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

// commit writes the image to a file, under another name until it is complete.
func (d *description) commit(ctx context.Context, dial dialer, file, overwrite string, files io.Reader) (id string, skipped []string, err error) {
	if err := d.checkCommit(file, overwrite); err != nil {
		return "", nil, err
	}
	dir, err := d.images()
	if err != nil {
		return "", nil, err
	}
	base, err := ociimage.NewStore(dir).Outside(ctx, d.record.Base)
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
	temp, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+"-*")
	if err != nil {
		return "", nil, err
	}
	defer os.Remove(temp.Name()) // after a rename there is nothing
	out := bufio.NewWriterSize(temp, 1<<20)
	hash, err := base.WriteWith(ctx, out, layer, d.record.Guest.Workdir)
	if err == nil {
		err = out.Flush()
	}
	if err := errors.Join(err, temp.Close()); err != nil {
		return "", nil, fmt.Errorf("write %s: %w", file, err)
	}
	publish := os.Link // fails for a name that is taken
	if overwrite != "" {
		publish = os.Rename
	}
	if err := publish(temp.Name(), file); err != nil {
		return "", nil, err
	}
	return hash.String(), layer.Skipped, nil
}

func (d *description) checkCommit(file, overwrite string) error {
	switch {
	case d.record.Guest.Host:
		return fmt.Errorf("%w: a sandbox of the host's toolchains has no image that its files could be added to: open it with an image (--image)", backend.ErrUnsupported)
	case d.record.Base.ID == "":
		return fmt.Errorf("%w: an earlier version has opened the sandbox, which did not note its image", backend.ErrUnsupported)
	case filepath.Ext(file) != ".tar" || filepath.Base(file) == ".tar":
		return fmt.Errorf("%w: the image of a local sandbox is a file: give a path that ends in .tar, not %q", backend.ErrInvalid, file)
	case overwrite != "" && overwrite != file:
		return fmt.Errorf("%w: what may be overwritten is %q, not the file asked for", backend.ErrInvalid, overwrite)
	}
	if _, err := os.Lstat(file); err == nil && overwrite == "" {
		return fmt.Errorf("%w: %s exists: choose another name, or say that it may be overwritten", backend.ErrInvalid, file)
	}
	return nil
}

// fillLayer adds what was written to the root, and the working directory.
func (d *description) fillLayer(ctx context.Context, dial dialer, layer *ociimage.Layer, files io.Reader) error {
	workdir := d.record.Guest.Workdir
	layer.MaxBytes = d.record.Info.Limits.Disk
	var left []string
	if d.record.WritableRoot {
		err := withAgent(ctx, dial, func(agent *agentclient.Client) error {
			layer.Deletions = true
			return stream(func(w io.Writer) error {
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
		return stream(func(w io.Writer) error { return img.WriteTree(ctx, from, w) }, func(r io.Reader) error {
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

// stream has read read what write writes.
func stream(write func(io.Writer) error, read func(io.Reader) error) error {
	pr, pw := io.Pipe()
	sent := make(chan error, 1)
	go func() {
		err := write(pw)
		pw.CloseWithError(err)
		sent <- err
	}()
	err := read(pr)
	pr.CloseWithError(io.ErrClosedPipe) // ends a writer whose reader is gone
	if werr := <-sent; err == nil && werr != nil && !errors.Is(werr, io.ErrClosedPipe) {
		err = werr
	}
	return err
}
