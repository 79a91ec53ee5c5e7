package pool

import (
	"context"
	"errors"
	"sync"

	"github.com/llmsandbox/llmsandbox"
)

// zygotes are those of a pool, one for each key that sandboxes were opened of.
type zygotes struct {
	mu sync.Mutex
	of map[string]*zygote
}

type zygote struct {
	mu sync.Mutex // held while it is started
	z  *llmsandbox.Zygote
}

// open opens a sandbox with these options from the zygote of their key.
func (all *zygotes) open(ctx context.Context, o llmsandbox.Options) (*llmsandbox.Sandbox, error) {
	id := Key{Language: o.Language, Image: o.Image, Libraries: o.Libraries, Environment: o.Environment}.id()
	all.mu.Lock()
	if all.of[id] == nil {
		all.of[id] = &zygote{}
	}
	one := all.of[id]
	all.mu.Unlock()
	z, err := one.get(ctx, o)
	if err != nil {
		return nil, err
	}
	return z.Open(ctx)
}

func (one *zygote) get(ctx context.Context, o llmsandbox.Options) (z *llmsandbox.Zygote, err error) {
	one.mu.Lock()
	defer one.mu.Unlock()
	if one.z == nil {
		one.z, err = llmsandbox.NewZygote(ctx, &o)
	}
	return one.z, err
}

// close is called once nothing is opened any more.
func (all *zygotes) close() error {
	all.mu.Lock()
	defer all.mu.Unlock()
	var errs []error
	for _, one := range all.of {
		if one.z != nil {
			errs = append(errs, one.z.Close())
		}
	}
	clear(all.of)
	return errors.Join(errs...)
}
