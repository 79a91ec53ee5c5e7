package local

import (
	"cmp"
	"sync"

	"github.com/llmsandbox/llmsandbox/backend"
)

// Backend creates sandboxes on this machine. It may be used concurrently.
type Backend struct {
	options Options
	dirs    func() (dirs, error)
	agent   func() (string, error) // path of the agent's binary
	sweep   sync.Once              // the collection of leftovers in the background
	// Only tests wait for sweeping: a sweep only removes what is
	// already dead and may be cut off anywhere.
	sweeping sync.WaitGroup
	isolator isolator
	disks    diskTemplates
	host     hostRoots
}

// New returns the local backend; nil options are the defaults. It looks at nothing yet: what this machine cannot do
// is the error of the first call that needs it.
func New(opts *Options) *Backend {
	b := &Backend{options: *cmp.Or(opts, &Options{}), isolator: namespaces{}}
	b.dirs = sync.OnceValues(func() (dirs, error) { return prepareDirs(b.options) })
	b.agent = sync.OnceValues(b.placeAgent)
	return b
}

var _ backend.Backend = (*Backend)(nil)

// Name is "local".
func (*Backend) Name() string { return "local" }
