package ruby

import (
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

var missing = language.Missing{
	Messages: [][2]string{{"cannot load such file -- ", " (LoadError)"}, {"cannot load such file -- ", ""}},
	Libraries: map[string]string{
		"action_controller": "actionpack", "action_view": "actionview", "active_model": "activemodel", "active_record": "activerecord",
		"active_support": "activesupport", "dotenv/load": "dotenv", "google/protobuf": "google-protobuf", "net/scp": "net-scp", "net/sftp": "net-sftp",
		"net/ssh": "net-ssh", "xlsxwriter": "write_xlsx", "zip": "rubyzip",
	},
	Library: func(module string) string {
		name, _, _ := strings.Cut(module, "/")
		return name
	},
}
