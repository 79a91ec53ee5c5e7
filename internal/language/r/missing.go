package r

import "github.com/llmsandbox/llmsandbox/internal/language"

var missing = language.Missing{
	Messages: [][2]string{{"there is no package called ‘", "’"}, {"there is no package called '", "'"}},
	Library:  func(module string) string { return module },
}
