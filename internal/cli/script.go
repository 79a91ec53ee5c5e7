package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/language/all"
	"github.com/llmsandbox/llmsandbox/internal/language/python"
)

// readMetadata adds the libraries of a script's own metadata (PEP 723) to those of the run, with
// --lib-from-script. Without it, it only notes that there are some, for a hint.
func (f *runFlags) readMetadata(src source) error {
	l, err := all.Get(f.lang)
	isPython := src.files == nil && src.notebooks == nil && (f.lang == "" || err == nil && l.Name == python.Language.Name)
	switch {
	case !isPython && f.fromScript:
		return errors.New("--lib-from-script: only a single Python file can list its libraries: use --lib")
	case !isPython:
		return nil
	}
	m, err := python.ScriptMetadata(src.code)
	if !f.fromScript {
		f.hints.script = err == nil && m != nil && len(m.Libraries) > 0
		return nil
	}
	if err != nil {
		return fmt.Errorf("--lib-from-script: %w", err)
	}
	if m == nil {
		return errors.New("--lib-from-script: the script lists no libraries: begin it with a block '# /// script' as in PEP 723, or use --lib")
	}
	f.libraries.libraries = append(f.libraries.libraries, m.Libraries...)
	f.metadata = m
	return nil
}

// checkVersion fails when the script requires another version of Python than the sandbox has.
func (f *runFlags) checkVersion(ctx context.Context, sb *llmsandbox.Sandbox, src source) error {
	if f.metadata == nil || f.metadata.Requires == "" {
		return nil
	}
	res, err := sb.Exec(ctx, []string{"python3", "-c", "import sys; print('%d.%d.%d' % sys.version_info[:3])"}, nil)
	if err != nil {
		return fmt.Errorf("get Python's version: %w", err)
	}
	version := strings.TrimSpace(res.Stdout)
	ok, err := f.metadata.Accepts(version)
	if err != nil {
		return fmt.Errorf("--lib-from-script: %w", err)
	}
	if ok {
		return nil
	}
	name := cmp.Or(src.name, "the script")
	return fmt.Errorf("%s requires Python %s, but the sandbox has %s: choose an image, such as --image python:3.13", filepath.Base(name), f.metadata.Requires, version)
}
