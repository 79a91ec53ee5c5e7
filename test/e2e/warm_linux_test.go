package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/backend/backendtest"
)

// TestWarmConformance is the suite with an interpreter that has imported modules in every sandbox of Python, which
// is forked into it from another one where that can be, and forks all runs and kernels.
func TestWarmConformance(t *testing.T) {
	c := conformance(t.TempDir())
	z := &zygotes{of: c.Backend, all: map[string]*llmsandbox.Zygote{}}
	c.Lacks = map[backendtest.Feature]string{backendtest.FreshInterpreters: "each sandbox has one that forks"}
	c.Options = func(o *llmsandbox.Options) {
		if cmp.Or(o.Language, llmsandbox.DefaultLanguage) == llmsandbox.DefaultLanguage && !o.Artifacts.Off && len(o.Imports) == 0 {
			o.Imports = []string{"decimal"}
		}
	}
	c.Open, c.Release = z.open, z.close
	backendtest.Run(t, c)
	if z.opened == 0 {
		t.Error("no sandbox was opened from a zygote")
	}
}

// zygotes are those of the options that sandboxes were opened with.
type zygotes struct {
	of     backend.Backend
	mu     sync.Mutex
	all    map[string]*llmsandbox.Zygote // nil: there can be none
	opened int
}

func (z *zygotes) open(ctx context.Context, o *llmsandbox.Options) (*llmsandbox.Sandbox, error) {
	of := *o
	key := fmt.Sprintf("%q %q %q %v %q %v %v %v %v %v %v", o.Image, o.Libraries, o.Environment, o.Limits, o.Imports, o.Env, o.Artifacts, o.Network, o.Secrets, o.Mounts, o.Volumes)
	of.Image, of.Libraries, of.Environment, of.Limits, of.Imports, of.Env, of.Artifacts = "", nil, "", llmsandbox.Limits{}, nil, nil, llmsandbox.ArtifactOptions{}
	of.Network, of.Secrets, of.Mounts, of.Volumes = llmsandbox.Network{}, nil, nil, nil
	of.Backend, of.BestEffort, of.Language = nil, false, ""
	if o.Backend != z.of || len(o.Libraries) > 0 /* a zygote would keep their layers in use */ || !reflect.DeepEqual(of, llmsandbox.Options{}) || cmp.Or(o.Language, llmsandbox.DefaultLanguage) != llmsandbox.DefaultLanguage {
		return llmsandbox.Open(ctx, o)
	}
	one, err := z.get(ctx, key, o)
	if err != nil {
		return nil, err
	}
	if one == nil {
		return llmsandbox.Open(ctx, o)
	}
	return one.Open(ctx)
}

func (z *zygotes) get(ctx context.Context, key string, o *llmsandbox.Options) (*llmsandbox.Zygote, error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	one, known := z.all[key]
	if !known {
		var err error
		if one, err = llmsandbox.NewZygote(ctx, o); err != nil && !errors.Is(err, llmsandbox.ErrUnsupported) {
			return nil, err
		}
		z.all[key] = one
	}
	if one != nil {
		z.opened++
	}
	return one, nil
}

func (z *zygotes) close(t *testing.T) {
	z.mu.Lock()
	defer z.mu.Unlock()
	for _, one := range z.all {
		if one != nil {
			if err := one.Close(); err != nil {
				t.Errorf("close a zygote: %v", err)
			}
		}
	}
	clear(z.all)
}
