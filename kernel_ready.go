package llmsandbox

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/llmsandbox/llmsandbox/internal/kernel"
)

// readyGrace bounds how long a driver may take until it is ready.
const readyGrace = 2 * time.Minute

// maxFirstWords bounds what is kept of what a driver says when it cannot start.
const maxFirstWords = 4 << 10

// ready waits until the driver says that it is.
func (k *Kernel) ready(ctx context.Context, d *driver) error {
	words := bounded{most: maxFirstWords}
	d.err.Begin(newMark(), &words)
	defer d.err.End()
	select {
	case e := <-d.events:
		if e.Event != kernel.EventReady {
			return fmt.Errorf("the kernel's driver broke its protocol: its first event is %q", e.Event)
		}
		k.mu.Lock()
		k.info = KernelInfo{Language: k.language.Name, Version: e.Version, Flavor: e.Flavor}
		k.mu.Unlock()
		return nil
	case <-d.gone:
		d.err.End()
		if err := d.end(); err != nil {
			return err
		}
		return fmt.Errorf("its process ended before it was ready (%s)%s", d.ending(), told(words.kept))
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// told are a driver's words at the end of an error.
func told(words []byte) string {
	if text := strings.TrimSpace(string(words)); text != "" {
		return ": " + text
	}
	return ""
}
