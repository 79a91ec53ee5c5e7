package llmsandbox

import (
	"sync"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/backend/local"
)

// defaultBackend is shared, so that what a backend learns about the machine is
// learnt once in a process.
var defaultBackend = sync.OnceValue(func() backend.Backend { return local.New(nil) })

func backendOrDefault(b backend.Backend) (backend.Backend, error) {
	if b != nil {
		return b, nil
	}
	return defaultBackend(), nil
}
