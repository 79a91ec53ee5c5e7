package declared

import (
	"embed"
	"fmt"
	"sync"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

//go:embed builtin/*.toml
var files embed.FS

// Builtin are the languages that the files in the directory builtin declare, by the files' names. They are read
// when they are first asked for: most programs are of other languages.
var Builtin = sync.OnceValue(func() []*language.Language {
	entries, err := files.ReadDir("builtin")
	if err != nil {
		panic(err) // what is embedded is there
	}
	var list []*language.Language
	for _, e := range entries {
		name := "builtin/" + e.Name()
		text, err := files.ReadFile(name)
		if err != nil {
			panic(err)
		}
		l, err := Parse(name, text)
		if err != nil {
			panic(fmt.Sprintf("declared: %v", err)) // a test reads all of them
		}
		list = append(list, l)
	}
	return list
})
