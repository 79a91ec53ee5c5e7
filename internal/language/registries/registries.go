// Package registries gathers where the libraries of a language come from: it takes
// credentials out of addresses, finds what certificates the machine trusts, and bounds
// what a configuration may say.
package registries

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
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
