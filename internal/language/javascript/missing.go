package javascript

import (
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

var missing = language.Missing{
	Messages: [][2]string{{"Cannot find module '", "'"}, {"Cannot find package '", "'"}},
	Library: func(module string) string {
		parts := strings.SplitN(module, "/", 3)
		if module[0] == '@' && len(parts) > 1 {
			return parts[0] + "/" + parts[1]
		}
		return parts[0]
	},
}
