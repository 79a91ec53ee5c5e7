package python

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/language/registries"
)

// configuration asks pip for the index that it uses when nothing is configured, for the host that this index's files
// lie on, and for its settings in the order in which they count. It loads less of pip than its command does.
const configuration = `from pip._internal.configuration import Configuration
from pip._internal.models.index import PyPI
print(PyPI.simple_url, PyPI.file_storage_domain)
loaded = Configuration(isolated=False)
loaded.load()
for name, value in loaded.items():
    # In newer ones, these are files with their settings.
    for name, value in sorted(value.items()) if isinstance(value, dict) else [(name, value)]:
        print("%s=%r" % (name, value))
`

// findRegistries are the index, the further indexes and the pages of links that pip is
// configured for on this machine, by its files or its environment.
func findRegistries(ask language.Ask) (language.Registries, error) {
	out, unknown := run(ask, "-c", configuration)
	defaults, list, _ := strings.Cut(string(out), "\n")
	if unknown != nil { // a pip that is made otherwise, or whose configuration is broken
		out, err := run(ask, "-m", "pip", "config", "list")
		if err != nil {
			return language.Registries{}, fmt.Errorf("ask pip for its configuration: %w", err)
		}
		defaults, list = "", string(out)
	}
	var r language.Registries
	config := settings(list)
	index := config["index-url"]
	if index == "" {
		if unknown != nil {
			return r, fmt.Errorf("ask pip for its default index (or set PIP_INDEX_URL): %w", unknown)
		}
		fields := strings.Fields(defaults)
		if len(fields) != 2 {
			return r, fmt.Errorf("%w: pip does not tell its default index: set PIP_INDEX_URL", registries.ErrConfiguration)
		}
		index = fields[0]
		if _, err := registries.Add(&r, "https://"+fields[1]+"/"); err != nil {
			return r, err
		}
	}
	if err := add(&r, "PIP_INDEX_URL", index); err != nil {
		return r, err
	}
	if err := add(&r, "PIP_EXTRA_INDEX_URL", config["extra-index-url"]); err != nil {
		return r, err
	}
	// Links may also be directories of this machine, which a sandbox does not see.
	var links []string
	for _, link := range strings.Fields(config["find-links"]) {
		if u, err := url.Parse(link); err == nil && (u.Scheme == "http" || u.Scheme == "https") {
			links = append(links, link)
		}
	}
	if err := add(&r, "PIP_FIND_LINKS", strings.Join(links, " ")); err != nil {
		return r, err
	}
	for _, name := range []string{"trusted-host", "timeout", "retries", "prefer-binary", "only-binary", "no-binary"} {
		if v := config[name]; v != "" {
			r.Env = append(r.Env, "PIP_"+strings.ToUpper(strings.ReplaceAll(name, "-", "_"))+"="+strings.Join(strings.Fields(v), " "))
		}
	}
	if err := registries.Netrc(&r, ask); err != nil {
		return r, err
	}
	trusted, err := registries.Trust(&r, ask, config["cert"], ask.Env("REQUESTS_CA_BUNDLE"), ask.Env("CURL_CA_BUNDLE"))
	if trusted {
		r.Env = append(r.Env, "PIP_CERT="+registries.CA)
	}
	return r, err
}

// add puts addresses, without their credentials, into a variable of pip's.
func add(r *language.Registries, variable, addresses string) error {
	var clean []string
	for _, address := range strings.Fields(addresses) {
		c, err := registries.Add(r, address)
		if err != nil {
			return fmt.Errorf("pip: %w", err)
		}
		clean = append(clean, c)
	}
	if clean != nil {
		r.Env = append(r.Env, variable+"="+strings.Join(clean, " "))
	}
	return nil
}

// run runs the interpreter that pip belongs to.
func run(ask language.Ask, args ...string) ([]byte, error) {
	out, err := ask.Program(append([]string{"python3"}, args...)...)
	if errors.Is(err, fs.ErrNotExist) {
		out, err = ask.Program(append([]string{"python"}, args...)...)
	}
	return out, err
}

// settings reads a list of lines section.name='value'. What is set for one command comes before what is set for all,
// and the environment before both. Of two of one section, the last counts: that of a user comes after the machine's.
func settings(list string) map[string]string {
	config := map[string]string{}
	rank := map[string]int{}
	for line := range strings.Lines(list) {
		key, value, found := strings.Cut(strings.TrimSpace(line), "=")
		section, name, _ := strings.Cut(key, ".")
		at := map[string]int{"global": 1, "install": 2, ":env:": 3}[section]
		if found && at > 0 && at >= rank[name] {
			config[name], rank[name] = unquote(value), at
		}
	}
	return config
}

// unquote reads a string as Python's repr writes it.
func unquote(s string) string {
	if len(s) < 2 || s[0] != s[len(s)-1] || s[0] != '\'' && s[0] != '"' {
		return s
	}
	return strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\t`, "\t", `\'`, `'`, `\"`, `"`).Replace(s[1 : len(s)-1])
}
