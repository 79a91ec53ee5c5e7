package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"

	"github.com/llmsandbox/llmsandbox/backend"
)

// List returns the sandboxes in the state directory whose owner lives, oldest first.
func (b *Backend) List(ctx context.Context) ([]backend.Info, error) {
	d, err := b.dirs()
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(d.sandboxes)
	if err != nil {
		return nil, fmt.Errorf("list sandboxes: %w", err)
	}
	var all []backend.Info
	var errs []error
	for _, e := range entries {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		path := filepath.Join(d.sandboxes, e.Name())
		if !validID(e.Name()) {
			continue
		}
		live, err := owned(path)
		if err != nil {
			errs = append(errs, err)
		}
		if !live {
			continue
		}
		r, err := readRecord(path)
		if errors.Is(err, os.ErrNotExist) {
			continue // being made, or removed meanwhile
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		all = append(all, r.Info)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Created.Before(all[j].Created) })
	return all, errors.Join(errs...)
}
