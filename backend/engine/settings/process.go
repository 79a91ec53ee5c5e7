package settings

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/moby/moby/api/types/container"

	"github.com/llmsandbox/llmsandbox/internal/environ"
)

// reservedLabel begins the labels that the project itself writes.
const reservedLabel = "llmsandbox."

func validVariable(name, value string) error {
	switch {
	case name == "" || strings.ContainsAny(name, "=\x00"):
		return errors.New("a variable's name is not empty and holds neither '=' nor NUL")
	case strings.HasPrefix(name, environ.Own):
		return errors.New("variables that begin with " + environ.Own + " are the sandbox's own; use another name")
	case noNUL(value) != nil:
		return errors.New("a variable's value holds no NUL")
	}
	return nil
}

func validLabel(name, value string) error {
	switch {
	case strings.HasPrefix(name, reservedLabel):
		return errors.New("labels that begin with " + reservedLabel + " are the sandbox's own; use another name")
	case word(name) != nil:
		return errors.New("a label's name is not empty and holds no white space")
	}
	return noNUL(value)
}

const useLogConfig = "a driver's name, such as json-file or none, or an object with Type and Config"

var toLogConfig = textOr(func(driver string) (container.LogConfig, error) {
	return container.LogConfig{Type: driver}, nil
}, useLogConfig)

func validLogConfig(c container.LogConfig) error {
	if word(c.Type) != nil {
		return errors.New("use " + useLogConfig)
	}
	return nil
}

func (s *Settings) applyProcess(cfg *container.Config, host *container.HostConfig) {
	cfg.WorkingDir = cmp.Or(s.WorkingDir, cfg.WorkingDir)
	var own []string
	for _, name := range slices.Sorted(maps.Keys(s.Environment)) {
		own = append(own, name+"="+s.Environment[name])
	}
	cfg.Env = environ.Override(cfg.Env, own)
	cfg.Labels = merged(cfg.Labels, s.Labels)
	host.Init = cmp.Or(s.Init, host.Init)
	host.Runtime = cmp.Or(s.Runtime, host.Runtime)
	setIf(&host.LogConfig, s.LogConfig)
}

// merged is base and add together, in a map of its own unless there is nothing to add.
func merged(base, add map[string]string) map[string]string {
	if len(add) == 0 {
		return base
	}
	all := map[string]string{}
	maps.Copy(all, base)
	maps.Copy(all, add)
	return all
}
