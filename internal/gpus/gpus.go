// Package gpus reads which GPUs a sandbox is to have.
package gpus

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/llmsandbox/llmsandbox/backend"
)

// All is the Count of all GPUs of the host.
const All = -1

// most bounds how many GPUs are asked for by number.
const most = 1024

// A Request is which GPUs a sandbox gets: a number of them, or those that are named. The zero value is none.
type Request struct {
	Count int
	IDs   []string // as the driver has them, such as "0" and "GPU-3faa8c21"
	CDI   []string // names of the Container Device Interface, such as "nvidia.com/gpu=0"
}

// Few sandboxes have GPUs, and every program that opens one has this package.
var (
	idPattern  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.:-]*$`) })
	cdiPattern = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.-]*/[A-Za-z][A-Za-z0-9_.-]*=[A-Za-z0-9][A-Za-z0-9_.:-]*$`)
	})
)

// Parse reads what backend.Spec has in GPUs. An error wraps backend.ErrInvalid.
func Parse(text string) (Request, error) {
	var r Request
	if text == "" {
		return r, nil
	}
	if text == "all" {
		return Request{Count: All}, nil
	}
	if n, err := strconv.Atoi(text); err == nil {
		if n < 1 || n > most {
			return r, fmt.Errorf("GPUs %q: %w: use a number from 1 to %d; the GPU with the index 0 alone has a UUID, and the CDI name nvidia.com/gpu=0", text, backend.ErrInvalid, most)
		}
		return Request{Count: n}, nil
	}
	for name := range strings.SplitSeq(text, ",") {
		switch {
		case cdiPattern().MatchString(name):
			r.CDI = append(r.CDI, name)
		case idPattern().MatchString(name):
			r.IDs = append(r.IDs, name)
		default:
			return Request{}, fmt.Errorf("GPUs %q: %w: use all, a number, or ids and CDI names with commas between, such as 0,1 or nvidia.com/gpu=0", text, backend.ErrInvalid)
		}
	}
	return r, nil
}
