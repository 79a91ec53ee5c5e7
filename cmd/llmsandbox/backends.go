package main

import (
	"cmp"
	"fmt"
	"os"

	"github.com/spf13/pflag"

	"github.com/llmsandbox/llmsandbox/backend"
)

// backendFlag adds the --backend flag, whose default LLMSANDBOX_BACKEND can set, to a
// command; what says what the backend is for.
func backendFlag(set *pflag.FlagSet, name *string, what string) {
	set.StringVar(name, "backend", cmp.Or(os.Getenv("LLMSANDBOX_BACKEND"), "local"), what+": local")
}

// backendByName returns the backend of a --backend flag.
func backendByName(name string) (backend.Backend, error) {
	if name == "local" {
		return localBackend()
	}
	return nil, fmt.Errorf("backend %q is not known: use local", name)
}
