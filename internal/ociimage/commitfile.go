package ociimage

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/llmsandbox/llmsandbox/backend"
)

// CheckFile reports why a file cannot get the image of a sandbox. overwrite is the file again where it may be there. It fails with
// backend.ErrInvalid.
func CheckFile(file, overwrite string) error {
	switch {
	case filepath.Ext(file) != ".tar" || filepath.Base(file) == ".tar":
		return fmt.Errorf("%w: the image of such a sandbox is a file: give a path that ends in .tar, not %q", backend.ErrInvalid, file)
	case overwrite != "" && overwrite != file:
		return fmt.Errorf("%w: what may be overwritten is %q, not the file asked for", backend.ErrInvalid, overwrite)
	}
	if _, err := os.Lstat(file); err == nil && overwrite == "" {
		return fmt.Errorf("%w: %s exists: choose another name, or say that it may be overwritten", backend.ErrInvalid, file)
	}
	return nil
}

// WriteFile is WriteWith to a file that CheckFile allows, under another name until it is complete.
func (o *Outside) WriteFile(ctx context.Context, file string, overwrite bool, l *Layer, workdir string) (v1.Hash, error) {
	temp, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+"-*")
	if err != nil {
		return v1.Hash{}, err
	}
	defer os.Remove(temp.Name()) // after a rename there is nothing
	out := bufio.NewWriterSize(temp, 1<<20)
	id, err := o.WriteWith(ctx, out, l, workdir)
	if err == nil {
		err = out.Flush()
	}
	if err := errors.Join(err, temp.Close()); err != nil {
		return v1.Hash{}, fmt.Errorf("write %s: %w", file, err)
	}
	publish := os.Link // fails for a name that is taken
	if overwrite {
		publish = os.Rename
	}
	return id, publish(temp.Name(), file)
}
