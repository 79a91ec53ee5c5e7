package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/llmsandbox/llmsandbox"
)

// secretFlags name secrets. Their values are never shown, not in errors either.
type secretFlags struct {
	secrets []string
	files   []string
	bodies  []string
}

func (f *secretFlags) register(set *pflag.FlagSet) {
	set.StringArrayVar(&f.secrets, "secret", nil, "`NAME=VALUE@HOST,...`, or NAME@HOST,... with the value from this command's environment: NAME is a placeholder inside, and requests to those hosts get the value (repeatable)")
	set.StringArrayVar(&f.files, "secret-file", nil, "`file` with such a line for each secret, so that values are not on a command line (repeatable)")
	set.StringArrayVar(&f.bodies, "secret-in-body", nil, "`NAME` of a secret that is put into request bodies too, not only into headers and queries (repeatable)")
}

// options reads the flags.
func (f *secretFlags) options() ([]llmsandbox.Secret, error) {
	var out []llmsandbox.Secret
	for _, text := range f.secrets {
		s, err := parseSecret(text)
		if err != nil {
			return nil, fmt.Errorf("--secret: %w", err)
		}
		out = append(out, s)
	}
	for _, name := range f.files {
		secrets, err := readSecrets(name)
		if err != nil {
			return nil, fmt.Errorf("--secret-file: %w", err)
		}
		out = append(out, secrets...)
	}
	for _, name := range f.bodies {
		i := slices.IndexFunc(out, func(s llmsandbox.Secret) bool { return s.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("--secret-in-body %q: no secret of that name is given", name)
		}
		out[i].Body = true
	}
	return out, nil
}

var errSecretForm = errors.New("use NAME=VALUE@HOST, or NAME@HOST for a value of the environment; more hosts follow after commas")

// parseSecret reads one secret. The hosts follow the last @, since a value may have one.
func parseSecret(text string) (llmsandbox.Secret, error) {
	at := strings.LastIndexByte(text, '@')
	if at < 0 {
		return llmsandbox.Secret{}, errSecretForm
	}
	name, value, given := strings.Cut(text[:at], "=")
	if name == "" {
		return llmsandbox.Secret{}, errSecretForm
	}
	if !given {
		if value, given = os.LookupEnv(name); !given {
			return llmsandbox.Secret{}, fmt.Errorf("%q is not in the environment of this command: set it there, or use NAME=VALUE@HOST", name)
		}
	}
	s := llmsandbox.Secret{Name: name, Value: value}
	for host := range strings.SplitSeq(text[at+1:], ",") {
		if host = strings.TrimSpace(host); host != "" {
			s.Hosts = append(s.Hosts, host)
		}
	}
	if len(s.Hosts) == 0 {
		return llmsandbox.Secret{}, fmt.Errorf("%q: %w", name, errSecretForm)
	}
	return s, nil
}

// maxSecretFile bounds a file of secrets.
const maxSecretFile = 1 << 20

// readSecrets reads a file of secrets: one a line, empty ones and those that begin
// with # left out.
func readSecrets(name string) ([]llmsandbox.Secret, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var out []llmsandbox.Secret
	lines := bufio.NewScanner(io.LimitReader(file, maxSecretFile))
	for number := 1; lines.Scan(); number++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		s, err := parseSecret(line)
		if err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", name, number, err)
		}
		out = append(out, s)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return out, nil
}
