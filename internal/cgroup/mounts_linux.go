package cgroup

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A mount of a control group file system.
type mount struct {
	point       string
	root        string // the group that is seen at point
	v2          bool
	controllers []string
}

// path is where the group, as /proc names it, is seen. A group that is not below
// the mount (a container's mount of its own group) is taken to be the mount's top.
func (m mount) path(group string) string {
	rel := strings.TrimPrefix(group, strings.TrimSuffix(m.root, "/"))
	if len(rel) == len(group) && m.root != "/" || rel != "" && rel[0] != '/' || strings.HasPrefix(rel, "/..") {
		rel = ""
	}
	return filepath.Join(m.point, rel)
}

func readMounts(root string) ([]mount, error) {
	data, err := os.ReadFile(filepath.Join(root, "proc/self/mountinfo"))
	if err != nil {
		return nil, err
	}
	return parseMounts(string(data), root), nil
}

func parseMounts(data, root string) []mount {
	var out []mount
	for line := range strings.Lines(data) {
		before, after, ok := strings.Cut(line, " - ")
		f, g := strings.Fields(before), strings.Fields(after)
		if !ok || len(f) < 6 || len(g) < 3 || g[0] != "cgroup" && g[0] != "cgroup2" {
			continue
		}
		m := mount{root: unescape(f[3]), point: filepath.Join(root, unescape(f[4])), v2: g[0] == "cgroup2"}
		if !m.v2 {
			m.controllers = strings.Split(g[2], ",")
		}
		out = append(out, m)
	}
	return out
}

var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace

// readOwn maps each version 1 controller, and "" for version 2, to the group.
func readOwn(path string) (map[string]string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parseOwn(string(data))
}

func parseOwn(data string) (map[string]string, error) {
	own := map[string]string{}
	for line := range strings.Lines(data) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(f) != 3 || !strings.HasPrefix(f[2], "/") {
			return nil, fmt.Errorf("line %q is not of the form id:controllers:/group", line)
		}
		for c := range strings.SplitSeq(f[1], ",") {
			own[c] = f[2]
		}
	}
	return own, nil
}
