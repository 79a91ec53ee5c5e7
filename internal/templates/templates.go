// Package templates keeps texts under names, each in a file of the configuration directory that no other user can
// read. What a template's text says is for the caller to know.
package templates

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/configdir"
	"github.com/llmsandbox/llmsandbox/internal/layerstore"
)

// ErrNotFound: there is no template of that name.
var ErrNotFound = errors.New("template not found")

const (
	// ext is the ending of a template's file.
	ext = ".json"
	// maxFile bounds one, in bytes.
	maxFile = 1 << 20
)

// directory is where they are. It is made if it is not there yet.
func directory() (string, error) {
	config, err := configdir.Default()
	if err == nil {
		err = layerstore.MakePrivate(config)
	}
	dir := filepath.Join(config, "templates")
	if err == nil {
		err = layerstore.MakePrivate(dir)
	}
	if err != nil {
		return "", fmt.Errorf("directory of templates: %w: set LLMSANDBOX_CONFIG_DIR to a directory of your own that can be written", err)
	}
	return dir, nil
}

// path is the file of the template of that name: 1 to 40 of a-z, 0-9 and '-', of which '-' is not the first.
func path(name string) (string, error) {
	if !validName(name) {
		return "", fmt.Errorf("template %q: %w: use a name of 1 to 40 of a-z, 0-9 and '-'", name, backend.ErrInvalid)
	}
	dir, err := directory()
	return filepath.Join(dir, name+ext), err
}

func validName(name string) bool { return len(name) <= 40 && layerstore.ValidKey(name) }

// Names are the names of the templates, sorted.
func Names() ([]string, error) {
	dir, err := directory()
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("list the templates: %w", err)
	}
	var names []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ext); ok && validName(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// Read returns the text of a template, and its file. It fails with ErrNotFound when there is none, and then
// names those that there are.
func Read(name string) (text []byte, file string, err error) {
	if file, err = path(name); err != nil {
		return nil, "", err
	}
	text, err = configdir.ReadFile(file, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", notFound(name)
	}
	if err != nil {
		return nil, "", fmt.Errorf("read the template %s: %w", name, err)
	}
	return text, file, nil
}

func notFound(name string) error {
	names, err := Names()
	if err != nil {
		return err
	}
	known := "there are none"
	if len(names) > 0 {
		known = "there is " + strings.Join(names, ", ")
	}
	return fmt.Errorf("%w: %s: %s: llmsandbox template create %s makes it", ErrNotFound, name, known, name)
}

// Save keeps a text under a name, in place of one of that name.
func Save(name string, text []byte) error {
	file, err := path(name)
	if err != nil {
		return err
	}
	if len(text) > maxFile {
		return fmt.Errorf("template %s: %w: it takes %d bytes: use at most %d", name, backend.ErrInvalid, len(text), maxFile)
	}
	if err := configdir.WriteFile(file, text, 0o600); err != nil {
		return fmt.Errorf("keep the template %s: %w", name, err)
	}
	return nil
}

// Remove removes a template. It fails with ErrNotFound when there is none.
func Remove(name string) error {
	file, err := path(name)
	if err != nil {
		return err
	}
	if err := os.Remove(file); errors.Is(err, fs.ErrNotExist) {
		return notFound(name)
	} else if err != nil {
		return fmt.Errorf("remove the template %s: %w", name, err)
	}
	return nil
}
