package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"

	"github.com/spf13/pflag"
)

// registerZygote adds what the servers' pools have in common.
func registerZygote(set *pflag.FlagSet, zygote *bool) {
	set.BoolVar(zygote, "zygote", false, "fork Python's sandboxes from one interpreter, whose imports (of --template) you trust")
}

// checkServer says which flags no server has, or not this one.
func (f *sandboxFlags) checkServer(zygote bool) error {
	excluded := named([]given{{"writable-root", f.writableRoot}, {"user", f.user != ""}, {"sudo", f.sudo}})
	switch {
	case f.place.Engine.Container != "":
		return errors.New("--container is for one sandbox, and a server has many: use --image")
	case f.place.Pod.Pod != "":
		return errors.New("--pod is for one sandbox, and a server has many: use --image or --pod-template")
	case zygote && f.place.Backend != localName:
		return fmt.Errorf("--zygote is for the local backend, and the backend is %s: leave it out", f.place.Backend)
	case zygote && len(excluded) > 0:
		return fmt.Errorf("--zygote and --%s exclude each other: leave one of them out", excluded[0])
	}
	return nil
}

// A number is a flag with the least that it can be.
type number struct {
	name     string
	n, least int
}

func atLeast(flags ...number) error {
	for _, f := range flags {
		if f.n < f.least {
			return tooSmall(f.name, strconv.Itoa(f.n), strconv.Itoa(f.least))
		}
	}
	return nil
}

// logLevel is the value of --log.
func logLevel(name string) (level slog.Level, err error) {
	if err := level.UnmarshalText([]byte(name)); err != nil {
		return level, fmt.Errorf("--log %q: use debug, info, warn or error", name)
	}
	return level, nil
}

func logAt(level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
}
