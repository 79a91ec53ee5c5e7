package environments

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/configdir"
)

// Default is the environment for data analysis, which is built in.
const Default = "data-science"

//go:embed data-science.toml
var dataScience []byte

// ErrNotFound: there is no environment of that name.
var ErrNotFound = errors.New("environment not found")

// ext is the ending of a lock's file.
const ext = ".toml"

// Dir is the directory with the user's own locks, which need not exist: environments in that of the
// configuration.
func Dir() (string, error) {
	dir, err := configdir.Default()
	return filepath.Join(dir, "environments"), err
}

// IsPath reports whether an environment is given as the path of a lock, and not by its name.
func IsPath(name string) bool {
	return strings.HasSuffix(name, ext) || strings.ContainsAny(name, `/\`)
}

// CheckName fails for what cannot be a name: 1 to 40 of a-z, 0-9 and '-', of which '-' is not the first.
func CheckName(name string) error {
	if name == "" || len(name) > 40 || name[0] == '-' || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		return fmt.Errorf("environment %q: %w: use a name of 1 to 40 of a-z, 0-9 and '-', or the path of a lock that ends with %s", name, backend.ErrInvalid, ext)
	}
	return nil
}

// Name is the name of an environment that may be given as a path.
func Name(name string) string {
	if !IsPath(name) {
		return name
	}
	return strings.TrimSuffix(filepath.Base(name), ext)
}

// Path is the file of the lock of that name, which need not exist; "" for what is built in.
func Path(name string) (string, error) {
	if IsPath(name) {
		return filepath.Abs(name)
	}
	if err := CheckName(name); err != nil || name == Default {
		return "", err
	}
	dir, err := Dir()
	return filepath.Join(dir, name+ext), err
}

// Find returns the lock of an environment, by its name or path. It fails with ErrNotFound when
// there is none.
func Find(name string) (Lock, error) {
	path, err := Path(name)
	if err != nil {
		return Lock{}, err
	}
	if path == "" {
		return Parse(dataScience)
	}
	l, err := Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		if IsPath(name) {
			return l, fmt.Errorf("%w: no such file: %s", ErrNotFound, path)
		}
		return l, fmt.Errorf("%w: %s: llmsandbox setup %s --lib LIBRARY makes it", ErrNotFound, name, name)
	}
	return l, err
}

// Read reads the lock of a file.
func Read(path string) (Lock, error) {
	data, err := configdir.ReadFile(path, maxLock)
	if err != nil {
		return Lock{}, fmt.Errorf("read the lock: %w", err)
	}
	l, err := Parse(data)
	if err != nil {
		err = fmt.Errorf("lock %s: %w", path, err)
	}
	return l, err
}

// Names are the names of the environments, sorted.
func Names() ([]string, error) {
	names := []string{Default}
	dir, err := Dir()
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list the environments: %w", err)
	}
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ext); ok && CheckName(name) == nil && name != Default {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// ownPath is the file of an own environment's lock.
func ownPath(name string) (string, error) {
	if err := CheckName(name); err != nil {
		return "", err
	}
	path, err := Path(name)
	if err == nil && path == "" {
		err = fmt.Errorf("environment %s: %w: it is built in and cannot be changed: choose another name", name, backend.ErrInvalid)
	}
	return path, err
}

// Save keeps a lock under a name, in place of one of that name, and returns its file.
func Save(name string, l Lock) (path string, err error) {
	if path, err = ownPath(name); err != nil {
		return "", err
	}
	data, err := l.Encode()
	if err != nil {
		return "", err
	}
	if err = os.MkdirAll(filepath.Dir(path), 0o755); err == nil {
		err = configdir.WriteFile(path, data, 0o644)
	}
	if err != nil {
		return "", fmt.Errorf("keep the environment %s: %w", name, err)
	}
	return path, nil
}

// Remove removes the lock of that name. It fails with ErrNotFound when there is none.
func Remove(name string) error {
	path, err := ownPath(name)
	if err != nil {
		return err
	}
	if err := os.Remove(path); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %s", ErrNotFound, name)
	} else if err != nil {
		return fmt.Errorf("remove the environment %s: %w", name, err)
	}
	return nil
}
