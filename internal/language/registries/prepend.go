package registries

import (
	"path"
	"strings"
)

// Prepend is the assignment that puts a directory of each library directory before what a
// search path has now.
func Prepend(name string, dirs []string, folder string, current func(string) string) string {
	var list []string
	for _, dir := range dirs {
		list = append(list, path.Join(dir, folder))
	}
	if now := current(name); now != "" {
		list = append(list, now)
	}
	return name + "=" + strings.Join(list, ":")
}
