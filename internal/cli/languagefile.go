package cli

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/configdir"
	"github.com/llmsandbox/llmsandbox/internal/language/all"
)

// languageFileFlag is the flag of commands that use languages.
const languageFileFlag = "language-file"

func registerLanguageFile(set *pflag.FlagSet, files *[]string) {
	set.StringArrayVar(files, languageFileFlag, nil, "add the language that this `FILE` declares (repeatable)")
}

// loadLanguages adds the user's own languages, which are in the directory languages beside the configuration file,
// and those of --language-file. A file that is not valid ends a command that uses languages; others warn of it.
func loadLanguages(set *pflag.FlagSet) error {
	uses := set.Lookup(languageFileFlag)
	if dir, err := configdir.Default(); err == nil { // without a home there are none
		err := all.LoadDir(filepath.Join(dir, "languages"))
		if err != nil && uses != nil {
			return err
		}
		if err != nil {
			stderr.note("llmsandbox: warning: " + err.Error())
		}
	}
	if uses == nil {
		return nil
	}
	return loadLanguageFiles(uses.Value.(pflag.SliceValue).GetSlice())
}

func loadLanguageFiles(files []string) error {
	for _, file := range files {
		if _, err := llmsandbox.LoadLanguage(file); err != nil {
			return fmt.Errorf("--%s: %w", languageFileFlag, withoutCall(err))
		}
	}
	return nil
}
