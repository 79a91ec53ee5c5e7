package golang

import "github.com/llmsandbox/llmsandbox/internal/language"

var missing = language.Missing{
	Messages: [][2]string{
		{"cannot find module providing package ", ":"}, {"no required module provides package ", ";"},
		{"cannot find module providing package ", ""}, {"no required module provides package ", ""},
	},
	Library: func(module string) string { return module },
}
