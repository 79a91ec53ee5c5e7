package layers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/bounded"
	"github.com/llmsandbox/llmsandbox/internal/egress"
	"github.com/llmsandbox/llmsandbox/internal/environ"
	"github.com/llmsandbox/llmsandbox/internal/language"
)

// reachRegistries lets a sandbox that installs reach the registries and nothing else:
// those at the addresses that are trusted wherever their names lead, others only where
// that is public.
func reachRegistries(ctx context.Context, s Sandbox, r language.Registries, trusted []string) error {
	policy, err := registryPolicy(r.URLs, trusted)
	if err != nil {
		return err
	}
	return s.Reach(ctx, policy)
}

// registryPolicy allows the hosts of URLs, each at its port, and those of this machine's own
// also where their names lead into private networks.
func registryPolicy(urls, own []string) (*egress.Policy, error) {
	hosts, err := registryHosts(urls)
	if err != nil {
		return nil, err
	}
	trusted, err := registryHosts(own)
	if err != nil {
		return nil, err
	}
	var rules []string
	for _, h := range hosts {
		rules = append(rules, h.String())
	}
	policy, err := egress.ParsePolicy("allow", rules)
	if err != nil {
		return nil, fmt.Errorf("reach the registries: %w", err)
	}
	for _, h := range hosts {
		if !slices.Contains(trusted, h) {
			continue
		}
		if err := policy.AllowRegistry(h.Name, h.Port); err != nil {
			return nil, fmt.Errorf("reach the registries: %w", err)
		}
	}
	return policy, nil
}

// A RegistryHost is where packages come from.
type RegistryHost struct {
	Name string
	Port uint16
}

// String is a rule for it.
func (h RegistryHost) String() string { return net.JoinHostPort(h.Name, strconv.Itoa(int(h.Port))) }

// PackageHosts are where the package tools of this machine get packages from, as they are configured: those of the languages, and
// the distribution's among them. A tool that is not installed has none.
func PackageHosts(ctx context.Context, languages []*language.Language) ([]RegistryHost, error) {
	ask := hostTools(ctx)
	found := make([]language.Registries, len(languages))
	errs := make([]error, len(languages))
	var all sync.WaitGroup
	for i, l := range languages {
		if l.Libraries == nil || l.Libraries.Registries == nil {
			continue
		}
		all.Go(func() {
			var err error
			if found[i], err = l.Libraries.Registries(ask); err != nil && !errors.Is(err, fs.ErrNotExist) {
				errs[i] = fmt.Errorf("where packages for %s come from: %w: mend the configuration of its package tool, or allow the hosts by their names", l.Name, err)
			}
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	var urls []string
	for _, r := range found {
		urls = append(urls, r.URLs...)
	}
	hosts, err := registryHosts(urls)
	if err == nil && len(hosts) == 0 {
		err = fmt.Errorf("%w: no package tool of a language or of the system is installed: allow the hosts by their names", backend.ErrUnsupported)
	}
	return hosts, err
}

// SourceHosts are the hosts that a file of sources of apt or apk names: by an address of http or https in a line that is no comment. Those that
// are no names are left out. The text may be anything.
func SourceHosts(text []byte) (hosts []RegistryHost) {
	for line := range strings.Lines(string(text)) {
		for word := range strings.FieldsSeq(line) {
			if strings.HasPrefix(word, "#") || len(hosts) == maxSourceHosts {
				break
			}
			if !strings.HasPrefix(word, "http://") && !strings.HasPrefix(word, "https://") {
				continue
			}
			found, err := registryHosts([]string{word})
			if err == nil && egress.IsName(found[0].Name) && !slices.Contains(hosts, found[0]) {
				hosts = append(hosts, found[0])
			}
		}
	}
	return hosts
}

// maxSourceHosts bounds how many are taken from one file.
const maxSourceHosts = 32

// registryHosts are the hosts of URLs, each once.
func registryHosts(urls []string) ([]RegistryHost, error) {
	var hosts []RegistryHost
	for _, text := range urls {
		u, err := url.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("a registry's address is no URL: %w", backend.ErrInvalid)
		}
		h := RegistryHost{Name: u.Hostname(), Port: 443}
		if u.Scheme == "http" {
			h.Port = 80
		}
		if p := u.Port(); p != "" {
			n, err := strconv.ParseUint(p, 10, 16)
			if err != nil || n == 0 {
				return nil, fmt.Errorf("registry %s: %w: its port is no number from 1 to 65535", u.Redacted(), backend.ErrInvalid)
			}
			h.Port = uint16(n)
		}
		if !slices.Contains(hosts, h) {
			hosts = append(hosts, h)
		}
	}
	return hosts, nil
}

// refusals are what an installation wanted to reach and could not, one line each.
func refusals(attempts []egress.Attempt) []string {
	const most = 5
	var lines []string
	for _, a := range attempts {
		line := fmt.Sprintf("could not reach %s: %s", net.JoinHostPort(a.Name, strconv.Itoa(int(a.Port))), a.Reason)
		if a.Reason != "" && len(lines) < most && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return lines
}

// explained is the end of a package tool's output, with what it could not reach, and for which
// registries this machine has names and tokens, which are never let into a sandbox.
func explained(output string, attempts []egress.Attempt, withheld []language.Credential) string {
	lines := append([]string{output}, refusals(attempts)...)
	for _, c := range withheld {
		lines = append(lines, fmt.Sprintf("the credentials for %s were not sent, as they are not let into a sandbox: "+
			"if it wants them, use a mirror that asks for none, or a folder of packages", c.URL))
	}
	return strings.TrimPrefix(strings.Join(lines, "\n"), "\n")
}

// registries finds where the libraries come from, and which of these are this machine's own.
// What an image says is not trusted: what it names beyond them must not lead into
// private networks. inside asks the sandbox that installs, which has the host's own system
// or an image.
func (q *Libraries) registries(ofMachine func() (language.Registries, error), inside language.Ask, host bool) (r language.Registries, own []string, err error) {
	find := q.language.Libraries.Registries
	machine, err := ofMachine()
	if host || !q.language.Libraries.Inside {
		if err == nil || host || !errors.Is(err, fs.ErrNotExist) {
			return machine, machine.URLs, err
		}
	}
	if err != nil {
		machine.URLs = nil // this machine names none, whatever the reason
	}
	if r, err = find(inside); err != nil {
		return r, nil, fmt.Errorf("ask the image: %w", err)
	}
	for _, address := range r.URLs {
		u, err := url.Parse(address)
		if err != nil {
			return r, nil, fmt.Errorf("the image's registry: %w: %w", backend.ErrInvalid, err)
		}
		if !egress.IsName(u.Hostname()) {
			return r, nil, fmt.Errorf("the image names a registry by the address %.100q: %w: only names are taken from images", u.Hostname(), backend.ErrUnsupported)
		}
	}
	return r, machine.URLs, nil
}

// machineRegistries begins to find where libraries come from by what this machine says.
func (q *Libraries) machineRegistries(ctx context.Context) func() (language.Registries, error) {
	find := sync.OnceValues(func() (language.Registries, error) { return q.language.Libraries.Registries(hostTools(ctx)) })
	go find()
	return find
}

// tools asks the package tools in the sandbox for their configuration. What they answer is
// of the image, and bounded like all output.
func (q *Libraries) tools(ctx context.Context, s Sandbox) language.Ask {
	return language.Ask{
		Program: func(argv ...string) ([]byte, error) { return q.askInside(ctx, s, argv) },
		Env:     func(name string) string { return environ.Value(s.Guest().Env, name) },
		File: func(path string) ([]byte, error) {
			client, err := s.Client(ctx)
			if err != nil {
				return nil, err
			}
			data, err := client.ReadAll(ctx, path, maxAnswer)
			if err != nil && absent(err) {
				return nil, fmt.Errorf("%s: %w", path, fs.ErrNotExist)
			}
			return data, err
		},
		Home: environ.Value(s.Guest().Env, "HOME"),
	}
}

func (q *Libraries) askInside(ctx context.Context, s Sandbox, argv []string) ([]byte, error) {
	there, err := inPath(ctx, s, argv[0])
	if err != nil {
		return nil, err
	}
	if !there {
		return nil, fmt.Errorf("%s: %w", argv[0], fs.ErrNotExist)
	}
	res, err := s.Run(ctx, Run{Plan: steps(language.Step{Argv: argv}), Timeout: min(toolTimeout, max(q.options.Timeout, time.Second))})
	switch {
	case err != nil:
		return nil, fmt.Errorf("ask %s: %w", argv[0], err)
	case res.Status != StatusOK:
		return nil, fmt.Errorf("ask %s: it ended as %s: %s", argv[0], res.Status, lastLine(res.Stderr))
	case len(res.Stdout) > maxAnswer:
		return nil, fmt.Errorf("ask %s: it says more than %d bytes", argv[0], maxAnswer)
	}
	return []byte(res.Stdout), nil
}

// Bounds of what a tool of this machine may take to tell its configuration.
const (
	toolTimeout = time.Minute
	maxAnswer   = 4 << 20
)

// hostTools asks the package tools of this machine for their configuration.
func hostTools(ctx context.Context) language.Ask {
	home, _ := os.UserHomeDir() // without one there is no configuration in it
	return language.Ask{
		Program: func(argv ...string) ([]byte, error) { return askTool(ctx, argv) },
		Env:     os.Getenv, File: readConfiguration, Home: home,
	}
}

func askTool(ctx context.Context, argv []string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, toolTimeout)
	defer cancel()
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", argv[0], fs.ErrNotExist)
	}
	cmd := exec.CommandContext(ctx, path, argv[1:]...)
	// A project that we happen to be started in must not say where libraries come from.
	cmd.Dir = os.TempDir()
	cmd.WaitDelay = time.Second // a child of the tool may hold its output
	out, errs := bounded.Writer{Most: maxAnswer}, bounded.Writer{Most: maxAnswer}
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("ask %s: %w", argv[0], ctx.Err())
	case err != nil:
		return nil, fmt.Errorf("ask %s: %w: %s", argv[0], err, lastLine(string(errs.Kept)))
	case out.Cut:
		return nil, fmt.Errorf("ask %s: it says more than %d bytes", argv[0], maxAnswer)
	}
	return out.Kept, nil
}

func readConfiguration(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, fmt.Errorf("%s is no ordinary file: %w", path, fs.ErrInvalid))
	}
	data, err := io.ReadAll(io.LimitReader(f, maxAnswer+1))
	if err == nil && len(data) > maxAnswer {
		err = fmt.Errorf("%s is larger than %d bytes: %w", path, maxAnswer, fs.ErrInvalid)
	}
	return data, err
}
