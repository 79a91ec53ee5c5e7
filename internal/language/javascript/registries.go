package javascript

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/language/registries"
)

// npmrc is where npm finds its registries in a sandbox.
const npmrc = registries.Dir + "/npmrc"

// findRegistries are the registry and those of scopes that npm is configured for on this
// machine, with the tokens that its files hold for them.
func findRegistries(ask language.Ask) (language.Registries, error) {
	var r language.Registries
	out, err := ask.Program("npm", "config", "ls", "-l", "--json")
	if err != nil {
		return r, fmt.Errorf("ask npm for its configuration: %w", err)
	}
	var config map[string]any
	if err := json.Unmarshal(out, &config); err != nil {
		return r, fmt.Errorf("%w: npm's is not what it should be: %w", registries.ErrConfiguration, err)
	}
	text := func(name string) string {
		s, _ := config[name].(string)
		return s
	}
	var lines []string
	for _, key := range slices.Sorted(maps.Keys(config)) {
		if key != "registry" && !(strings.HasPrefix(key, "@") && strings.HasSuffix(key, ":registry")) {
			continue
		}
		if strings.ContainsAny(key, "\n=") {
			return r, fmt.Errorf("%w: npm's names the scope %q", registries.ErrConfiguration, key)
		}
		clean, err := registries.Add(&r, text(key))
		if err != nil {
			return r, fmt.Errorf("npm: %w", err)
		}
		lines = append(lines, key+"="+clean)
	}
	if strict, ok := config["strict-ssl"].(bool); ok && !strict {
		lines = append(lines, "strict-ssl=false")
	}
	for _, name := range []string{text("userconfig"), text("globalconfig")} {
		if err := credentials(&r, ask, name); err != nil {
			return r, err
		}
	}
	r.Files = []language.File{{Path: npmrc, Data: []byte(strings.Join(lines, "\n") + "\n"), Mode: 0o644}}
	trusted, err := registries.Trust(&r, ask, text("cafile"), ask.Env("NODE_EXTRA_CA_CERTS"))
	r.Env = []string{"npm_config_userconfig=" + npmrc}
	if trusted {
		r.Env = append(r.Env, "NODE_EXTRA_CA_CERTS="+registries.CA)
	}
	return r, err
}

// credentials takes what a file of npm's settings holds for each registry, which npm does
// not tell when it is asked: //host/path/:_authToken=…, :_auth=…, :username=… and :_password=….
func credentials(r *language.Registries, ask language.Ask, name string) error {
	if name == "" {
		return nil
	}
	data, err := ask.File(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w: npm's file: %w", registries.ErrConfiguration, err)
	}
	users, passwords := map[string]string{}, map[string]string{}
	for line := range strings.Lines(string(data)) {
		key, value, found := strings.Cut(strings.TrimSpace(line), "=")
		at := strings.LastIndexByte(key, ':')
		if !found || at < 0 || !strings.HasPrefix(key, "//") {
			continue
		}
		url, what := key[2:at], strings.TrimSpace(key[at+1:])
		value = expand(strings.Trim(strings.TrimSpace(value), `"'`), ask)
		switch what {
		case "_authToken":
			header(r, url, "Bearer "+value)
		case "_auth":
			header(r, url, "Basic "+value)
		case "username":
			users[url] = value
		case "_password":
			plain, err := base64.StdEncoding.DecodeString(value)
			if err != nil {
				return fmt.Errorf("%w: npm's password for a registry is not in base64", registries.ErrConfiguration)
			}
			passwords[url] = string(plain)
		}
	}
	for url, user := range users {
		if password, ok := passwords[url]; ok {
			header(r, url, "Basic "+base64.StdEncoding.EncodeToString([]byte(user+":"+password)))
		}
	}
	return nil
}

// header notes a header for those registries that lie below an address without a scheme.
func header(r *language.Registries, below, value string) {
	for _, url := range r.URLs {
		_, rest, _ := strings.Cut(url, "://")
		if strings.HasPrefix(strings.TrimSuffix(rest, "/")+"/", strings.TrimSuffix(below, "/")+"/") {
			registries.Header(r, url, "Authorization", value)
		}
	}
}

var variable = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\??\}`) })

// expand puts in the environment variables that npm's files may name.
func expand(value string, ask language.Ask) string {
	return variable().ReplaceAllStringFunc(value, func(m string) string { return ask.Env(variable().FindStringSubmatch(m)[1]) })
}
