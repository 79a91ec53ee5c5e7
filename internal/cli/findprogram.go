package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// findProgram looks for another program of this project: beside this one, and then in PATH,
// whose relative folders do not count: what lies in a working directory is not ours.
func findProgram(name string) (string, error) {
	var beside []string
	if self, err := os.Executable(); err == nil {
		beside = foldersOf(self)
	}
	return findIn(name, beside, filepath.SplitList(os.Getenv("PATH")))
}

// foldersOf are the folders that a program is in, by its name and with links resolved.
func foldersOf(program string) []string {
	dirs := []string{filepath.Dir(program)}
	if real, err := filepath.EvalSymlinks(program); err == nil && filepath.Dir(real) != dirs[0] {
		dirs = append(dirs, filepath.Dir(real))
	}
	return dirs
}

func findIn(name string, beside, path []string) (string, error) {
	for _, dir := range slices.Concat(beside, path) {
		if !filepath.IsAbs(dir) {
			continue
		}
		if found, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return found, nil
		}
	}
	where := "in PATH"
	if len(beside) > 0 {
		where = "beside this program (" + strings.Join(beside, ", ") + ") or " + where
	}
	return "", fmt.Errorf("%s is not %s", name, where)
}
