package llmsandbox

import (
	"errors"
	"fmt"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/language/all"
	"github.com/llmsandbox/llmsandbox/internal/language/declared"
)

// LoadLanguage adds the language that a file declares to those of this process, and returns its name for
// Options.Language. It is then used as a built-in one is: by sandboxes, policies that are compiled later, templates and
// servers. docs/add-a-language.md describes the file. Only load what you trust: its commands run in sandboxes, but
// may say anything of what a program did.
//
// It fails with ErrInvalid, and names the line and the key, for a file that is not valid, that is larger than 64 KiB, or that has a name, an
// alias, an ending or a program of a #! line that another language has. Loading the same file again does nothing.
// What is loaded stays until the process ends.
func LoadLanguage(path string) (name string, err error) {
	l, err := all.Load(path)
	if errors.Is(err, declared.ErrInvalid) {
		return "", asInvalid(err)
	}
	if err != nil {
		return "", err
	}
	return l.Name, nil
}

// unknownHere is the language of a sandbox whose name this process does not know: what opened it had loaded a file.
func unknownHere(name string, err error) *language.Language {
	return &language.Language{Name: name, Title: name, Plan: func(language.Source) (language.Plan, error) {
		return language.Plan{}, fmt.Errorf("%w; if a file declares it, load that with LoadLanguage or --language-file", err)
	}}
}
