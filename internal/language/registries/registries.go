// Package registries gathers where the libraries of a language come from: it takes
// credentials out of addresses, finds what certificates the machine trusts, and bounds
// what a configuration may say.
package registries

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/trust"
)

// Dir is where the files that tell tools about registries lie in a sandbox.
const Dir = "/tmp/.llmsandbox-registries"

// ErrConfiguration means that the machine's configuration of a package tool cannot be used.
var ErrConfiguration = errors.New("cannot use the machine's package configuration")

// maxURLs bounds how many registries a configuration may name.
const maxURLs = 64

// Add notes that an installation may reach a URL, and returns it without its
// credentials, which are sent by us.
func Add(r *language.Registries, raw string) (string, error) {
	u, err := parse(raw)
	if err != nil {
		return "", err
	}
	user := u.User
	u.User = nil
	clean := u.String()
	if user != nil && user.String() != "" {
		password, _ := user.Password()
		Basic(r, clean, user.Username(), password)
	}
	if slices.Contains(r.URLs, clean) {
		return clean, nil
	}
	if len(r.URLs) == maxURLs {
		return "", fmt.Errorf("%w: it names more than %d registries", ErrConfiguration, maxURLs)
	}
	r.URLs = append(r.URLs, clean)
	return clean, nil
}

// Basic notes that requests below a URL carry a user's name and password.
func Basic(r *language.Registries, url, user, password string) {
	value := "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
	Header(r, url, "Authorization", value)
}

// Header notes a header that requests below a URL carry. The first one for a URL counts.
func Header(r *language.Registries, url, name, value string) {
	if !slices.ContainsFunc(r.Credentials, func(c language.Credential) bool { return c.URL == url && c.Header == name }) {
		r.Credentials = append(r.Credentials, language.Credential{URL: url, Header: name, Value: value})
	}
}

func parse(raw string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSpace(raw))
	switch {
	case err != nil:
		// The error of url.Parse repeats the address, and with it what may be a password.
		return nil, fmt.Errorf("%w: the address of a registry is no URL", ErrConfiguration)
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("%w: the registry %q is not reached by http or https", ErrConfiguration, u.Redacted())
	case u.Hostname() == "" || u.Opaque != "":
		return nil, fmt.Errorf("%w: the registry %q names no host", ErrConfiguration, u.Redacted())
	}
	u.Fragment, u.RawFragment = "", ""
	return u, nil
}

// maxLibrary bounds a library's name with its version.
const maxLibrary = 200

// Plain refuses what no ecosystem's library looks like, before any grammar is asked:
// what is empty or
// long, starts like an option or a path, leads up or elsewhere, holds anything but
// visible ASCII, or what a shell would take for more than a word.
func Plain(library string) error {
	why := ""
	switch {
	case library == "":
		why = "it is empty"
	case len(library) > maxLibrary:
		return fmt.Errorf("library %.20q…: %w: it is longer than %d characters", library, language.ErrInvalidLibrary, maxLibrary)
	case library[0] == '-':
		why = "it starts like an option"
	case strings.ContainsRune("/.~", rune(library[0])) || strings.Contains(library, "..") || strings.Contains(library, "://"):
		why = "it is a path or an address"
	case strings.ContainsFunc(library, func(r rune) bool { return r <= ' ' || r > '~' }):
		why = "it holds a space, a control character or one that is not ASCII"
	case strings.ContainsAny(library, ";&|$`\"'\\(){}?#%"):
		why = "it holds a character that no library's name has"
	default:
		return nil
	}
	return fmt.Errorf("library %q: %w: %s", library, language.ErrInvalidLibrary, why)
}

// Check returns the [language.Libraries].Check of what a pattern describes and refused, which may be nil, lets
// pass. Its errors name the package manager and end in form, which says how to write a library.
func Check(manager, pattern, form string, refused func(lower string) bool) func(string) (string, error) {
	grammar := sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
	return func(library string) (string, error) {
		if err := Plain(library); err != nil {
			return "", err
		}
		if !grammar().MatchString(library) || refused != nil && refused(strings.ToLower(library)) {
			return "", fmt.Errorf("library %q of %s: %w: %s", library, manager, language.ErrInvalidLibrary, form)
		}
		return library, nil
	}
}

// NameBefore returns a [language.Language].LibraryName: what comes before a separator.
func NameBefore(separator string) func(string) string {
	return func(canonical string) string {
		name, _, _ := strings.Cut(canonical, separator)
		return name
	}
}

// CA is where Trust puts certificates in a sandbox.
const CA = Dir + "/ca.pem"

// maxCA bounds a bundle of certificates: a system's has some 250 KiB.
const maxCA = 8 << 20

// Trust adds the certificates that this machine trusts as a file at CA, and reports
// whether there is one: what an image trusts need not be what the registries, or a
// company's proxy before them, are signed by. A configured bundle, the first that is
// not empty, comes before the one that the environment names, and that before the
// system's. A configured one that cannot be read is an error.
func Trust(r *language.Registries, ask language.Ask, configured ...string) (bool, error) {
	for _, name := range append(configured, ask.Env("SSL_CERT_FILE")) {
		if name == "" {
			continue
		}
		data, err := ask.File(name)
		if err != nil {
			return false, fmt.Errorf("%w: certificates to trust: %w", ErrConfiguration, err)
		}
		return plant(r, data)
	}
	data, found, err := trust.System(ask.File)
	if err != nil {
		return false, fmt.Errorf("%w: certificates to trust: %w", ErrConfiguration, err)
	}
	if !found {
		return false, nil
	}
	return plant(r, data)
}

func plant(r *language.Registries, data []byte) (bool, error) {
	switch {
	case len(data) > maxCA:
		return false, fmt.Errorf("%w: the certificates to trust are more than %d MiB", ErrConfiguration, maxCA>>20)
	case !bytes.Contains(data, []byte("-----BEGIN ")):
		return false, fmt.Errorf("%w: the file of certificates to trust has none in PEM form", ErrConfiguration)
	}
	r.Files = append(r.Files, language.File{Path: CA, Data: data, Mode: 0o644})
	return true, nil
}

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

// Prepend is the assignment that puts a directory of each library directory before what a
// search path has now.
func Prepend(name string, dirs []string, sub string, current func(string) string) string {
	var list []string
	for _, dir := range dirs {
		list = append(list, path.Join(dir, sub))
	}
	if now := current(name); now != "" {
		list = append(list, now)
	}
	return name + "=" + strings.Join(list, ":")
}
