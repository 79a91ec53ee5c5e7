package cli

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language/all"
	"github.com/llmsandbox/llmsandbox/security"
)

// maxChecked bounds the code of a directory that is checked, in bytes.
const maxChecked = 64 << 20

// directoryProgram is all code below a directory, each file in the language that its name or its
// first line says, without its notebooks, whose paths are returned. It says what is skipped.
func directoryProgram(dir, language string) (p security.Program, notebooks []string, err error) {
	p = security.Program{Language: language, Name: dir, Files: map[string][]byte{}}
	var total, unknown, large int
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != dir && strings.HasPrefix(d.Name(), "."):
			return filepath.SkipDir // version control and the like
		case !d.Type().IsRegular():
			return nil
		case isNotebook(path, nil):
			notebooks = append(notebooks, path)
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if info.Size() > maxSource {
			if _, ok := all.Guess(path, nil); ok {
				large++
			} else {
				unknown++
			}
			return nil
		}
		data, err := readSource(path)
		if err != nil {
			return err
		}
		if _, ok := all.Guess(path, data); !ok {
			unknown++
			return nil
		}
		if total += len(data); total > maxChecked {
			return fmt.Errorf("it has more than %d MiB of code: check its directories one at a time", maxChecked>>20)
		}
		p.Files[path] = data
		return nil
	})
	if err != nil {
		return p, nil, fmt.Errorf("check the directory %s: %w", dir, err)
	}
	var skipped []string
	if unknown > 0 {
		skipped = append(skipped, plural(unknown, "file")+" of unknown kind")
	}
	if large > 0 {
		skipped = append(skipped, plural(large, "source file")+fmt.Sprintf(" larger than %d MiB", maxSource>>20))
	}
	if len(skipped) > 0 {
		fmt.Fprintf(stderr, "llmsandbox: %s: skipped %s\n", dir, strings.Join(skipped, " and "))
	}
	if len(p.Files)+len(notebooks) == 0 {
		return p, nil, fmt.Errorf("check the directory %s: no file in it is code of a known language", dir)
	}
	return p, notebooks, nil
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
