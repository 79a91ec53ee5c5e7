package registries

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

// Netrc notes the credentials that the user's netrc file holds for the hosts of the registries. A
// file that is not there has none; macros end the reading, as nothing but machines is of
// use behind them.
func Netrc(r *language.Registries, ask language.Ask) error {
	file := cmp.Or(ask.Env("NETRC"), path.Join(ask.Home, ".netrc"))
	data, err := ask.File(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w: credentials: %w", ErrConfiguration, err)
	}
	var machine, login string
	fields := strings.Fields(string(data))
	for i := 0; i+1 < len(fields) && fields[i] != "macdef" && fields[i] != "default"; i += 2 {
		switch value := fields[i+1]; fields[i] {
		case "machine":
			machine, login = value, ""
		case "login":
			login = value
		case "password":
			for _, address := range r.URLs {
				if u, err := url.Parse(address); err == nil && u.Hostname() == machine {
					Basic(r, address, login, value)
				}
			}
		}
	}
	return nil
}
