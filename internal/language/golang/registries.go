package golang

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/language/registries"
)

// findRegistries are the module proxies that the go command is configured for on this
// machine, and its checksum database. What it would get from repositories directly is
// not reached.
func findRegistries(ask language.Ask) (language.Registries, error) {
	var r language.Registries
	names := []string{"GOPROXY", "GOSUMDB", "GONOSUMDB", "GOPRIVATE", "GONOPROXY"}
	out, err := ask.Program(append([]string{"go", "env", "-json"}, names...)...)
	if err != nil {
		return r, fmt.Errorf("ask the go command for its proxies: %w", err)
	}
	var config map[string]string
	if err := json.Unmarshal(out, &config); err != nil {
		return r, fmt.Errorf("%w: the go command's is not what it should be: %w", registries.ErrConfiguration, err)
	}
	// Behind a comma the next one is asked when a module is not there, behind a bar
	// after any error.
	var list strings.Builder
	rest, last := config["GOPROXY"], ""
	for rest != "" {
		proxy, separator := rest, ""
		if at := strings.IndexAny(rest, ",|"); at >= 0 {
			proxy, separator, rest = rest[:at], rest[at:at+1], rest[at+1:]
		} else {
			rest = ""
		}
		if proxy = strings.TrimSpace(proxy); proxy == "off" {
			break
		}
		if proxy == "direct" || proxy == "" || strings.HasPrefix(proxy, "file:") {
			continue
		}
		clean, err := registries.Add(&r, proxy)
		if err != nil {
			return r, fmt.Errorf("GOPROXY: %w", err)
		}
		list.WriteString(last + clean)
		last = separator
	}
	if list.Len() == 0 {
		return r, fmt.Errorf("%w: GOPROXY names no proxy, and repositories are not reached directly: set one, or give a folder laid out as a proxy", registries.ErrConfiguration)
	}
	if err := registries.Netrc(&r, ask); err != nil {
		return r, err
	}
	r.Env = []string{"GOPROXY=" + list.String()}
	for _, name := range names[1:] {
		r.Env = append(r.Env, name+"="+config[name])
	}
	if err := sums(&r, config["GOSUMDB"]); err != nil {
		return r, err
	}
	trusted, err := registries.Trust(&r, ask)
	if trusted {
		r.Env = append(r.Env, "SSL_CERT_FILE="+registries.CA)
	}
	return r, err
}

// sums notes where a checksum database is asked, which GOSUMDB names with, perhaps, its
// key and address. A proxy may answer for it.
func sums(r *language.Registries, database string) error {
	fields := strings.Fields(database)
	if len(fields) == 0 || fields[0] == "off" {
		return nil
	}
	name, _, _ := strings.Cut(fields[0], "+")
	address := "https://" + name
	if len(fields) > 1 {
		address = fields[1]
	}
	if _, err := registries.Add(r, address); err != nil {
		return fmt.Errorf("GOSUMDB: %w", err)
	}
	return nil
}
