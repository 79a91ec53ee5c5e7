// Package mcpenv reads the environment variables that set up an MCP server where the
// client's configuration has room for nothing else.
package mcpenv

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/bytesize"
)

// The names of backends that variables mean something else for.
const (
	local      = "local"
	kubernetes = "kubernetes"
)

// Settings are what the variables say. A zero field was not set, or a flag says it.
type Settings struct {
	// Commit asks for an image of the sandbox after each execution.
	Commit bool
	// RemoveImage asks to remove an image that was got for a sandbox with it.
	RemoveImage bool
	// Memory is the text of a size, CPUs that of a number.
	Memory, CPUs string
	// Namespace is where the pods of a cluster are.
	Namespace string
	// Options are runtime options of a container engine, by the engine's names.
	Options []Option
}

// An Option is one runtime option; a list has one Option for each of its items.
type Option struct{ Key, Value string }

// Backend is the backend that the environment names, in small letters; "" when none.
func Backend(getenv func(string) string) string {
	return strings.ToLower(strings.TrimSpace(getenv("BACKEND")))
}

// variables are the ones of a sandbox, in the order of errors.
var variables = []string{
	"SANDBOX_NETWORK_MODE", "SANDBOX_READ_ONLY", "SANDBOX_MEMORY", "SANDBOX_MEM_LIMIT", "SANDBOX_CPUS", "SANDBOX_CPU_COUNT",
	"SANDBOX_CAP_DROP", "SANDBOX_SECURITY_OPT", "SANDBOX_PRIVILEGED",
}

// Unknown are the names in an environment that look like a sandbox's and are none, as a
// misspelt limit would be.
func Unknown(environ []string) []string {
	var names []string
	for _, line := range environ {
		name, _, _ := strings.Cut(line, "=")
		if strings.HasPrefix(name, "SANDBOX_") && !slices.Contains(variables, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Read reads the variables as they are for a backend. given tells of a flag, or of a
// runtime option as "runtime-option KEY", whether it was given: it wins over its variable,
// which then need not fit the backend. Read fails with llmsandbox.ErrInvalid for a value
// that makes no sense, and for one that the backend cannot do; nothing is left out.
func Read(getenv func(string) string, backend string, given func(flag string) bool) (Settings, error) {
	r := &reader{getenv: getenv, backend: backend, given: given}
	for _, name := range variables {
		if backend == kubernetes && r.text(name) != "" {
			return Settings{}, fmt.Errorf("%s: %w: the variables SANDBOX_* are for container engines, and the backend is kubernetes: unset them", name, llmsandbox.ErrInvalid)
		}
	}
	r.namespace()
	r.images()
	r.limits()
	r.network()
	r.security()
	return r.s, r.err
}

// A reader keeps the first error.
type reader struct {
	getenv  func(string) string
	backend string
	given   func(string) bool
	s       Settings
	err     error
}

// text is a variable's value; what is blank is not set.
func (r *reader) text(name string) string { return strings.TrimSpace(r.getenv(name)) }

func (r *reader) fail(name, format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%s: %w: %s", name, llmsandbox.ErrInvalid, fmt.Sprintf(format, args...))
	}
}

// flag is a variable's value as a boolean; set tells whether there is one.
func (r *reader) flag(name string) (value, set bool) {
	switch text := r.text(name); strings.ToLower(text) {
	case "":
		return false, false
	case "true", "1", "yes", "on":
		return true, true
	case "false", "0", "no", "off":
		return false, true
	default:
		if r.err == nil {
			r.err = fmt.Errorf("%s must be one of: true, 1, yes, on, false, 0, no, off (it is %.40q): %w", name, text, llmsandbox.ErrInvalid)
		}
		return false, false
	}
}

func (r *reader) images() {
	if commit, _ := r.flag("COMMIT_CONTAINER"); commit && !r.given("commit") {
		r.s.Commit = true
		if r.backend == local || r.backend == kubernetes {
			r.fail("COMMIT_CONTAINER", "the %s backend makes no images of sandboxes: use the backend docker or podman", r.backend)
		}
	}
	if keep, set := r.flag("KEEP_TEMPLATE"); set && !keep && !r.given("keep-image") {
		r.s.RemoveImage = true
		switch r.backend {
		case local:
			r.fail("KEEP_TEMPLATE", "the local backend keeps the images it has: remove them with `llmsandbox image rm`")
		case kubernetes:
			r.fail("KEEP_TEMPLATE", "the images are the nodes', which remove them as the cluster is set up to")
		}
	}
}

func (r *reader) limits() {
	for _, name := range []string{"SANDBOX_MEMORY", "SANDBOX_MEM_LIMIT"} { // the last one wins
		text := r.text(name)
		if text == "" {
			continue
		}
		n, err := bytesize.Parse(text)
		switch {
		case err != nil:
			r.fail(name, "%v", err)
		case n == 0:
			r.fail(name, "a sandbox without memory cannot work: use a size such as 512m")
		case !r.given("memory"):
			r.s.Memory = text
		}
	}
	if text := r.text("SANDBOX_CPUS"); text != "" {
		v, err := strconv.ParseFloat(text, 64)
		switch {
		case err != nil || !(v > 0 && v <= 4096): // also NaN
			r.fail("SANDBOX_CPUS", "%.40q is no number of CPUs: use one such as 0.5 or 2", text)
		case !r.given("cpus"):
			r.s.CPUs = strconv.FormatFloat(v, 'f', -1, 64)
		}
	}
	if text := r.text("SANDBOX_CPU_COUNT"); text != "" {
		n, err := strconv.ParseUint(text, 10, 12)
		switch {
		case err != nil || n == 0:
			r.fail("SANDBOX_CPU_COUNT", "%.40q is no whole number above 0: use one such as 2, or SANDBOX_CPUS for parts of a CPU", text)
		case !r.given("cpus"):
			r.s.CPUs = strconv.FormatUint(n, 10)
		}
	}
}
