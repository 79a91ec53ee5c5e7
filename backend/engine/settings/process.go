package settings

import (
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

// cutLabel cuts NAME[=VALUE].
func cutLabel(text string) (string, string, error) {
	name, value, _ := strings.Cut(text, "=")
	return name, value, nil
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

var logConfig = codec{
	set: func(s *Settings, v any) error {
		if driver, err := toText(v); err == nil {
			s.LogConfig = &container.LogConfig{Type: driver}
			return nil
		}
		c, err := toObject[container.LogConfig](v, "a driver's name, or an object with Type and Config")
		s.LogConfig = &c
		return err
	},
	check: func(s *Settings) (any, error) {
		if s.LogConfig == nil {
			return nil, nil
		}
		if word(s.LogConfig.Type) != nil {
			return s.LogConfig.Type, errors.New("use a driver's name, such as json-file or none, or an object with Type and Config")
		}
		return nil, nil
	},
}

func (s *Settings) applyProcess(cfg *container.Config, host *container.HostConfig) {
	setText(&cfg.User, s.User)
	setText(&cfg.WorkingDir, s.WorkingDir)
	cfg.Env = withVariables(cfg.Env, s.Environment)
	cfg.Labels = merged(cfg.Labels, s.Labels)
	host.GroupAdd = append(host.GroupAdd, s.Groups...)
	if s.Init != nil {
		host.Init = s.Init
	}
	setText(&host.Runtime, s.Runtime)
	setIf(&host.LogConfig, s.LogConfig)
}

// withVariables adds variables to NAME=VALUE lines, each in the place of one of the
// same name.
func withVariables(lines []string, add map[string]string) []string {
	kept := slices.DeleteFunc(slices.Clone(lines), func(line string) bool {
		name, _, _ := strings.Cut(line, "=")
		_, replaced := add[name]
		return replaced
	})
	for _, name := range slices.Sorted(maps.Keys(add)) {
		kept = append(kept, name+"="+add[name])
	}
	return kept
}

// merged is base and add together, in a map of its own unless there is nothing to add.
func merged(base, add map[string]string) map[string]string {
	if len(add) == 0 {
		return base
	}
	all := make(map[string]string, len(base)+len(add))
	maps.Copy(all, base)
	maps.Copy(all, add)
	return all
}
