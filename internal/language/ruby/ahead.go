package ruby

import (
	_ "embed"
	"path"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

//go:embed ahead.rb
var bootstrap string

// ahead has Ruby wait for its code.
func ahead(src language.CaptureSource) language.Capture {
	before := src.Current("RUBYOPT")
	literal := "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(before) + "'"
	file := path.Join(src.Support, "ahead.rb")
	return language.Capture{
		Files: []language.File{{Path: file, Data: []byte(strings.Replace(bootstrap, "@before@", literal, 1)), Mode: 0o644}},
		Env:   []string{strings.TrimSpace("RUBYOPT=-r" + file + " " + before)},
	}
}

// settable reports whether a variable can be set once the interpreter has started.
func settable(name string) bool { return language.SetLate(name, "RUBY", "GEM", "BUNDLE") }
