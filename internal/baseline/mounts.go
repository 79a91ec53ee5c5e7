package baseline

import (
	"path"
	"slices"
	"strings"
)

// A mount is what is to be seen at a path.
type mount struct {
	path, kind string
	writable   bool
}

// mounts reads lines of /proc/self/mounts; what is none is left out. Where several are at a
// path the last is seen. Paths with blanks keep their escapes and so lead nowhere, which is
// an error when they are looked at.
func mounts(lines string) []mount {
	seen := map[string]mount{}
	for line := range strings.Lines(lines) {
		fields := strings.Fields(line)
		if len(fields) < 4 || !path.IsAbs(fields[1]) {
			continue
		}
		options := strings.Split(fields[3], ",")
		seen[fields[1]] = mount{path: fields[1], kind: fields[2], writable: slices.Contains(options, "rw")}
	}
	all := make([]mount, 0, len(seen))
	for _, m := range seen {
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b mount) int { return strings.Compare(a.path, b.path) })
	return all
}

// keepsNothing tells whether what code writes there is gone with its processes.
func (m mount) keepsNothing() bool {
	return !m.writable || m.kind == "devpts" || m.kind == "proc" || strings.HasPrefix(m.path, "/proc/")
}

// around is the mount among all that another one's path is in; none for the root.
func around(all []mount, inner mount) mount {
	var outer mount
	for _, m := range all {
		if m.path != inner.path && strings.HasPrefix(inner.path, strings.TrimSuffix(m.path, "/")+"/") && len(m.path) > len(outer.path) {
			outer = m
		}
	}
	return outer
}
