package javascript

import (
	_ "embed"
	"encoding/json"
	"path"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

//go:embed ahead.js
var bootstrap string

// ahead has Node.js wait for its code.
func ahead(src language.CaptureSource) language.Capture {
	before := src.Current("NODE_OPTIONS")
	literal, err := json.Marshal(before)
	if err != nil {
		panic(err) // a string always can be
	}
	file := path.Join(src.Support, "ahead.js")
	return language.Capture{
		Files: []language.File{{Path: file, Data: []byte(strings.Replace(bootstrap, "@before@", string(literal), 1)), Mode: 0o644}},
		Env:   []string{strings.TrimSpace("NODE_OPTIONS=--require=" + file + " " + before)},
	}
}

// settable reports whether a variable can be set once the interpreter has started.
func settable(name string) bool {
	return language.SetLate(name, "NODE", "UV_", "ICU_", "OPENSSL_", "SSL_", "NO_COLOR", "FORCE_COLOR")
}
