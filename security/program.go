package security

import (
	"context"
	"maps"
	"slices"

	"github.com/llmsandbox/llmsandbox/internal/language/all"
)

// A Program is all that a run executes.
type Program struct {
	// Language is the name of what Code is written in.
	Language string
	// Name is the main file's name where there is one, Code its content.
	Name string
	Code []byte
	// Files are the others, by their relative paths. Those whose ending or first line
	// tells no language are data.
	Files map[string][]byte
	// Libraries are installed for it.
	Libraries []string
}

// CheckProgram looks at a program's libraries, its main file, and its other files in the
// order of their names. Its errors are those of [Checker.Check].
func (c *Checker) CheckProgram(ctx context.Context, p Program) (Report, error) {
	report, err := c.CheckLibraries(p.Language, p.Libraries)
	if err != nil {
		return report, err
	}
	add := func(lang, file string, code []byte) error {
		of, err := c.Check(ctx, lang, code)
		if err != nil {
			return err
		}
		for _, f := range of.Findings {
			f.File = file
			report.Findings = append(report.Findings, f)
		}
		report.Blocked = report.Blocked || of.Blocked
		report.Omitted += of.Omitted
		return nil
	}
	if len(p.Code) > 0 {
		if err := add(p.Language, p.Name, p.Code); err != nil {
			return report, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Files)) {
		lang, ok := all.Guess(name, p.Files[name])
		if !ok {
			continue
		}
		if err := add(lang.Name, name, p.Files[name]); err != nil {
			return report, err
		}
	}
	return report, nil
}
