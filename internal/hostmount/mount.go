// Package hostmount decides which directories and files of the host can be mounted into a
// sandbox, and where.
package hostmount

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/errclass"
	"github.com/llmsandbox/llmsandbox/internal/statedir"
)

// Max is how many mounts a sandbox can have.
const Max = 16

// Parse reads HOST:SANDBOX[:ro|cow]. HOST may contain colons.
func Parse(text string) (backend.Mount, error) {
	m := backend.Mount{Mode: backend.MountReadOnly}
	rest, last := cutLast(text)
	if last != "" && !strings.HasPrefix(last, "/") && strings.Contains(rest, ":/") {
		m.Mode = backend.MountMode(last)
		if err := checkMode(m.Mode); err != nil {
			return m, err
		}
		rest, last = cutLast(rest)
	}
	if m.Source, m.Target = rest, last; rest == "" || !strings.HasPrefix(last, "/") {
		return m, errors.New("use HOST:SANDBOX[:ro|cow], where SANDBOX is an absolute path such as /sandbox/data")
	}
	if m.Target != "/" {
		m.Target = strings.TrimSuffix(m.Target, "/")
	}
	return m, nil
}

// cutLast cuts at the last colon; before is empty if there is none.
func cutLast(text string) (before, after string) {
	i := strings.LastIndexByte(text, ':')
	return text[:max(i, 0)], text[i+1:]
}

func checkMode(m backend.MountMode) error {
	switch m {
	case "", backend.MountReadOnly, backend.MountCopyOnWrite:
		return nil
	case "rw":
		return errors.New("code cannot write to the host, so there is no mode rw: use cow for changes that stay in the sandbox, or copy files in and out (--file and --out, llmsandbox cp)")
	}
	return fmt.Errorf("mode %q is not known: use ro or cow", string(m))
}

// hidden are the paths inside that hold the sandbox or its programs: no mount can be at one or
// below it.
var hidden = []string{"/proc", "/sys", "/dev", "/tmp", "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt/toolchains",
	"/.llmsandbox", "/.llmsandbox-layers"}

// Check reports whether mounts make sense without looking at the host. Layers are what else is
// mounted. Its error wraps backend.ErrInvalid.
func Check(mounts []backend.Mount, layers []backend.Layer) error {
	if len(mounts) > Max {
		return errclass.Errorf(backend.ErrInvalid, "%d mounts are more than %d: mount a folder that contains them", len(mounts), Max)
	}
	var taken []string
	for _, l := range layers {
		taken = append(taken, path.Clean(l.Target))
	}
	for _, m := range mounts {
		err := checkMode(m.Mode)
		if err == nil {
			err = checkTarget(m.Target, taken)
		}
		if err == nil && (!filepath.IsAbs(m.Source) || strings.ContainsRune(m.Source, 0)) {
			err = errors.New("the source must be an absolute path")
		}
		if err != nil {
			return errclass.Errorf(backend.ErrInvalid, "mount %q at %q: %w", m.Source, m.Target, err)
		}
		taken = append(taken, m.Target)
	}
	return nil
}

// CheckWorkdir reports whether a working directory, which may be empty, can be made in a sandbox with these mounts. Its
// error wraps backend.ErrInvalid.
func CheckWorkdir(dir string, mounts []backend.Mount) error {
	if dir == "" || dir == "/sandbox" {
		return nil
	}
	err := checkTarget(dir, nil)
	for _, other := range []string{"/var", "/run", "/home"} {
		if dir == other {
			err = fmt.Errorf("%s has directories of the sandbox: use one below it", dir)
		}
	}
	if within(dir, "/sandbox") {
		err = errors.New("/sandbox is the default: leave it out, or use a path elsewhere")
	}
	for _, m := range mounts {
		if within(dir, m.Target) {
			err = fmt.Errorf("the mount at %s would hide it", m.Target)
		}
	}
	if err != nil {
		return errclass.Errorf(backend.ErrInvalid, "working directory %q: %w", dir, err)
	}
	return nil
}

// CheckKept reports whether a directory of an existing container or pod can be a working directory. Its error wraps
// backend.ErrInvalid.
func CheckKept(dir string) error {
	err := checkPath(dir)
	for _, other := range []string{"/proc", "/sys", "/dev"} {
		if within(dir, other) {
			err = fmt.Errorf("%s is the kernel's: use a directory of files", other)
		}
	}
	if dir == "/" {
		err = errors.New("it has directories of the system: use one below it")
	}
	if err != nil {
		return errclass.Errorf(backend.ErrInvalid, "working directory %q: %w", dir, err)
	}
	return nil
}

// checkPath refuses what is no plain path, such as one that a list of paths cannot have.
func checkPath(p string) error {
	odd := func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r) || strings.ContainsRune(`:,\`, r)
	}
	switch {
	case !path.IsAbs(p) || path.Clean(p) != p:
		return errors.New("the path in the sandbox must be absolute, without '..', '.' or '//'")
	case strings.ContainsFunc(p, odd):
		return errors.New("the path in the sandbox cannot contain blanks, control characters, ':', ',' or '\\'")
	}
	return nil
}

func checkTarget(target string, taken []string) error {
	if err := checkPath(target); err != nil {
		return err
	}
	switch {
	case target == "/" || target == "/sandbox" || target == "/opt":
		return fmt.Errorf("a mount at %s would hide the sandbox's own files: use a path below /sandbox, or a new one such as /data", target)
	}
	for _, dir := range hidden {
		if within(target, dir) {
			return fmt.Errorf("%s is the sandbox's own: use a path below /sandbox, or a new one such as /data", dir)
		}
	}
	for _, other := range taken {
		if within(target, other) || within(other, target) {
			return fmt.Errorf("%s is mounted there already: no mount can be at or inside another one", other)
		}
	}
	return nil
}

// within reports whether a clean path is dir or below it.
func within(p, dir string) bool {
	return p == dir || strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/")
}

// A Source is an opened source of a mount.
type Source struct {
	backend.Mount          // Source is its path, of which no part is a symbolic link; Mode is set
	File          *os.File // opened with O_PATH; nil where the system has no such thing
	Dir           bool
}

// refused are the host's directories that show the machine, not files, or hold sockets of its services.
var refused = []string{"/proc", "/sys", "/dev", "/run"}

// Open opens the sources of checked mounts. No source can be in one of the directories own, or contain one: other
// sandboxes are known there.
func Open(mounts []backend.Mount, own ...string) (opened []Source, err error) {
	for _, find := range []func() (string, error){statedir.Default, statedir.Lasting} {
		if dir, err := find(); err == nil {
			own = append(own, dir)
		}
	}
	for _, m := range mounts {
		s, err := open(m)
		if err == nil {
			opened = append(opened, s)
			err = s.check(own)
		}
		if err != nil {
			Close(opened)
			return nil, errclass.Errorf(backend.ErrInvalid, "mount %q at %s: %w", m.Source, m.Target, err)
		}
	}
	return opened, nil
}

// Close closes what Open has opened.
func Close(opened []Source) {
	for _, s := range opened {
		_ = s.File.Close() // of a nil one it only fails
	}
}

func (s *Source) check(own []string) error {
	if !s.Dir && s.Mode == backend.MountCopyOnWrite {
		return errors.New("cow is for folders: mount the folder of the file, or copy the file in (--file, llmsandbox cp)")
	}
	if i := slices.IndexFunc(refused, func(dir string) bool { return within(s.Source, dir) }); i >= 0 {
		return fmt.Errorf("nothing in %s of the host can be mounted: copy files in (--file, llmsandbox cp)", refused[i])
	}
	for _, dir := range own {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			dir = real
		}
		if within(dir, s.Source) || within(s.Source, dir) {
			return fmt.Errorf("it contains, or is in, llmsandbox's own folder %s: mount a smaller folder", dir)
		}
	}
	return nil
}

// Unsupported is the error of mounts where there can be none, for a reason; nil if there are none. It
// wraps backend.ErrUnsupported.
func Unsupported(mounts []backend.Mount, why string) error {
	if len(mounts) == 0 {
		return nil
	}
	return errclass.Errorf(backend.ErrUnsupported, "mount %q at %s: %s: copy the files in and out (--file and --out, llmsandbox cp)", mounts[0].Source, mounts[0].Target, why)
}

// Mounts are what sources are mounted as.
func Mounts(opened []Source) []backend.Mount {
	var all []backend.Mount
	for _, s := range opened {
		all = append(all, s.Mount)
	}
	return all
}

// Control reports where mounts are, without their paths on the host.
func Control(mounts []backend.Mount, by, how string) backend.Control {
	list := []string{how}
	for _, m := range mounts {
		list = append(list, fmt.Sprintf("%s (%s)", m.Target, m.Mode))
	}
	return backend.Control{Name: "mounts", Enforced: true, By: by, Detail: strings.Join(list, ", ")}
}
