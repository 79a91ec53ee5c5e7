package hostroot

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
)

// scriptDir has what the skeleton adds to a toolchain's own programs. It comes first in PATH.
const scriptDir = toolchains + "/bin"

const (
	maxScript  = 64 << 10
	maxScripts = 5000
)

// addScripts notes a directory of console scripts, such as pip and pytest, which name their
// interpreter by a path of the host.
func (f *finder) addScripts(dir string) {
	if f.InPlace {
		return // they are beside the interpreter
	}
	f.scripts = append(f.scripts, dir)
	f.addPath(scriptDir)
}

// python is the interpreter's path in the root.
func (f *finder) python() string {
	for _, found := range f.found {
		if found.Language == "python" {
			return found.Path
		}
	}
	return ""
}

// linkPython makes "python" a name of the interpreter where the host has only "python3".
func (f *finder) linkPython(inside string) {
	dirs := append([]string{filepath.Dir(inside)}, systemPath...)
	for _, b := range f.binds {
		if under(inside, b.Target) {
			dirs[0] = filepath.Join(b.Source, strings.TrimPrefix(filepath.Dir(inside), b.Target))
		}
	}
	for _, dir := range dirs {
		if _, err := os.Stat(filepath.Join(dir, "python")); err == nil {
			return
		}
	}
	f.links[filepath.Join(scriptDir, "python")] = inside
	f.addPath(scriptDir)
}

// scripts writes the console scripts of dirs, of the first directory that has the name, so that
// they start interpreter, a path in the root.
func (b *builder) scripts(dirs []string, interpreter string) {
	left := maxScripts
	for _, dir := range dirs {
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue // it went away, or is not ours to read
		}
		var links []string
		for _, e := range entries {
			if left--; left < 0 {
				return
			}
			name := filepath.Join(scriptDir, e.Name())
			if _, err := os.Lstat(filepath.Join(b.dir, name)); err == nil {
				continue
			}
			if e.Type()&os.ModeSymlink != 0 {
				links = append(links, e.Name())
			} else if text, ok := retarget(readScript(filepath.Join(dir, e.Name())), interpreter); ok {
				b.write(name, text)
				b.chmod(name, 0o755)
			}
		}
		for _, link := range links {
			target, err := os.Readlink(filepath.Join(dir, link))
			if err != nil || target != filepath.Base(target) {
				continue // only a second name of a script
			}
			if _, err := os.Stat(filepath.Join(b.dir, scriptDir, target)); err == nil {
				b.symlink(target, filepath.Join(scriptDir, link))
			}
		}
	}
}

// readScript returns a file that everybody may execute and that starts with #!, nil for others.
func readScript(path string) []byte {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o005 != 0o005 || info.Size() > maxScript {
		return nil
	}
	text := make([]byte, 2, info.Size()+2)
	if _, err := io.ReadFull(f, text); err != nil || string(text) != "#!" {
		return nil
	}
	rest, err := io.ReadAll(io.LimitReader(f, maxScript))
	if err != nil {
		return nil
	}
	return append(text, rest...)
}

// The two forms of a console script's start. The second is for paths that are too long for the
// first, or have a space.
var scriptStarts = sync.OnceValue(func() []*regexp.Regexp {
	return []*regexp.Regexp{
		regexp.MustCompile(`^#![ \t]*(/[^\s]*)`),
		regexp.MustCompile(`^#!/bin/sh\n'''exec' (?:"(/[^"\n]+)"|'(/[^'\n]+)'|(/[^\s]+))`),
	}
})

var interpreted = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(?:python|pypy)[0-9.]*$`) })

// retarget returns a console script that starts interpreter in place of the Python it names;
// false where it names none outside of the system's directories.
func retarget(script []byte, interpreter string) ([]byte, bool) {
	for _, form := range scriptStarts() {
		match := form.FindSubmatchIndex(script)
		for i := 2; i < len(match); i += 2 {
			if match[i] < 0 {
				continue
			}
			path := string(script[match[i]:match[i+1]])
			if interpreted().MatchString(filepath.Base(path)) && !isSystem(filepath.Clean(path)) {
				return bytes.Join([][]byte{script[:match[i]], script[match[i+1]:]}, []byte(interpreter)), true
			}
		}
	}
	return nil, false
}
