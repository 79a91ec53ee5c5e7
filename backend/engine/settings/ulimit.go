package settings

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/moby/moby/api/types/container"
)

const useUlimit = "NAME=SOFT[:HARD], such as nofile=1024:2048, or an object with Name, Soft and Hard"

var ulimitNames = strings.Fields("core cpu data fsize locks memlock msgqueue nice nofile nproc rss rtprio rttime sigpending stack")

func ulimitsField(s *Settings) *[]container.Ulimit { return &s.Ulimits }

// toUlimit decodes NAME=SOFT[:HARD] or an object; a limit that is left out is as the
// other.
func toUlimit(v any) (container.Ulimit, error) {
	if m, ok := v.(map[string]any); ok {
		return ulimitObject(m)
	}
	text, err := toText(v)
	name, limits, found := strings.Cut(text, "=")
	if err != nil || !found {
		return container.Ulimit{}, errors.New("use " + useUlimit)
	}
	softText, hardText, both := strings.Cut(limits, ":")
	if !both {
		hardText = softText
	}
	soft, err1 := toInt(softText)
	hard, err2 := toInt(hardText)
	if err1 != nil || err2 != nil {
		return container.Ulimit{}, errors.New("use " + useUlimit)
	}
	return container.Ulimit{Name: name, Soft: soft, Hard: hard}, nil
}

func ulimitObject(m map[string]any) (container.Ulimit, error) {
	type object struct {
		Name       string
		Soft, Hard *int64
	}
	o, err := toObject[object](m, useUlimit)
	if err != nil {
		return container.Ulimit{}, err
	}
	if o.Soft == nil {
		o.Soft = o.Hard
	}
	if o.Hard == nil {
		o.Hard = o.Soft
	}
	if o.Soft == nil {
		return container.Ulimit{}, errors.New("use " + useUlimit)
	}
	return container.Ulimit{Name: o.Name, Soft: *o.Soft, Hard: *o.Hard}, nil
}

func validUlimit(u container.Ulimit) error {
	switch {
	case !slices.Contains(ulimitNames, u.Name):
		return fmt.Errorf("name %q: use one of %s", shorten(u.Name), strings.Join(ulimitNames, ", "))
	case u.Soft < -1 || u.Hard < -1:
		return errors.New("a limit is at least 0, or -1 for none")
	case u.Hard != -1 && (u.Soft == -1 || u.Soft > u.Hard):
		return errors.New("the soft limit must not be above the hard one")
	}
	return nil
}

// applyUlimits puts each limit in the place of a default of the same name.
func (s *Settings) applyUlimits(host *container.HostConfig) {
	for _, u := range s.Ulimits {
		host.Ulimits = slices.DeleteFunc(slices.Clone(host.Ulimits), func(d *container.Ulimit) bool { return d.Name == u.Name })
		host.Ulimits = append(host.Ulimits, &u)
	}
}
