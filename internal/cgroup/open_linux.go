package cgroup

import (
	"fmt"
	"os"
	"path/filepath"
)

// Open returns the group that another process made for the sandbox whose first
// process is pid, to read what it uses.
func (s *Support) Open(name string, pid int) (*Group, error) {
	if err := validName(name); err != nil {
		return nil, err
	}
	g := &Group{s: s, name: name, dirs: map[string]string{}}
	if s.Version != V2 {
		for c, found := range s.controllers {
			// Not every controller need be one that its maker could use.
			dir := filepath.Join(found.base, name)
			if _, err := os.Lstat(dir); found.base != "" && err == nil {
				g.dirs[c] = dir
			}
		}
		return g, nil
	}
	own, err := readOwn(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return nil, fmt.Errorf("control group of %s: %w", name, err)
	}
	g.dirs[""] = s.v2.path(own[""])
	return g, nil
}
