package settings

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/docker/go-units"
	"github.com/moby/moby/api/types/container"
)

const useUlimit = "NAME=SOFT[:HARD], such as nofile=1024:2048, or an object with Name, Soft and Hard: a name is one of core, cpu, data, fsize, locks, memlock, msgqueue, nice, nofile, nproc, rss, rtprio, rttime, sigpending and stack, a limit at least 0, or -1 for none, and the soft one must not be above the hard one"

func ulimitsField(s *Settings) *[]container.Ulimit { return &s.Ulimits }

// toUlimit decodes NAME=SOFT[:HARD] or an object; a limit that is left out is as the
// other.
func toUlimit(v any) (container.Ulimit, error) {
	text, err := toText(v)
	if err != nil {
		o, err := toObject[struct {
			Name       string
			Soft, Hard *int64
		}](v, useUlimit)
		soft, hard := cmp.Or(o.Soft, o.Hard), cmp.Or(o.Hard, o.Soft)
		if err != nil || soft == nil {
			return container.Ulimit{}, cmp.Or(err, errors.New("use "+useUlimit))
		}
		return container.Ulimit{Name: o.Name, Soft: *soft, Hard: *hard}, nil
	}
	u, err := units.ParseUlimit(text)
	if err != nil {
		return container.Ulimit{}, fmt.Errorf("%w: use %s", err, useUlimit)
	}
	return *u, nil
}

func validUlimit(u container.Ulimit) error {
	if u.Soft < -1 || u.Hard < -1 {
		return errors.New("use " + useUlimit)
	}
	_, err := toUlimit(u.String())
	return err
}

// applyUlimits puts each limit in the place of a default of the same name.
func (s *Settings) applyUlimits(host *container.HostConfig) {
	for _, u := range s.Ulimits {
		host.Ulimits = slices.DeleteFunc(slices.Clone(host.Ulimits), func(d *container.Ulimit) bool { return d.Name == u.Name })
		host.Ulimits = append(host.Ulimits, &u)
	}
}
