//go:build linux

package main

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// rlimitNames are the resources by the names that engines use.
var rlimitNames = map[string]uint32{
	"as": unix.RLIMIT_AS, "core": unix.RLIMIT_CORE, "cpu": unix.RLIMIT_CPU, "data": unix.RLIMIT_DATA,
	"fsize": unix.RLIMIT_FSIZE, "memlock": unix.RLIMIT_MEMLOCK, "nofile": unix.RLIMIT_NOFILE,
	"nproc": unix.RLIMIT_NPROC, "stack": unix.RLIMIT_STACK,
}

// maxRlimit is the kernel's largest number of a resource.
const maxRlimit = 15

// parseRlimit parses RESOURCE=VALUE: a name or number, and a number or "unlimited".
func parseRlimit(s string) (agentproto.Rlimit, error) {
	name, value, ok := strings.Cut(s, "=")
	if !ok {
		return agentproto.Rlimit{}, errors.New("not of the form RESOURCE=VALUE")
	}
	resource, known := rlimitNames[name]
	if !known {
		n, err := strconv.ParseUint(name, 10, 32)
		if err != nil || n > maxRlimit {
			return agentproto.Rlimit{}, errors.New("the resource is neither a number from 0 to 15 nor one of as, core, cpu, data, fsize, memlock, nofile, nproc, stack")
		}
		resource = uint32(n)
	}
	if value == "unlimited" {
		return agentproto.Rlimit{Resource: resource, Value: math.MaxUint64}, nil
	}
	n, err := strconv.ParseUint(value, 10, 64)
	if err != nil {
		return agentproto.Rlimit{}, errors.New(`the value is neither a number nor "unlimited"`)
	}
	return agentproto.Rlimit{Resource: resource, Value: n}, nil
}
