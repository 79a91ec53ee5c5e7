// Package mcpenv reads the environment variables that set up an MCP server where the
// client's configuration has room for nothing else.
package mcpenv

import (
	"cmp"
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

// network reads what a container engine's network is called. The local backend has none
// of these, and what the sandbox may reach is another flag's matter on every backend.
func (r *reader) network() {
	mode := r.text("SANDBOX_NETWORK_MODE")
	switch {
	case mode == "" || r.given("network") || strings.EqualFold(mode, "none"): // the default
	case r.backend == local:
		r.fail("SANDBOX_NETWORK_MODE", "%.40q is a network of a container engine, and the backend is local: use --network full, or better --network allow=HOST", mode)
	default:
		r.option("network_mode", mode)
	}
}

func (r *reader) security() {
	if readOnly, set := r.flag("SANDBOX_READ_ONLY"); set {
		r.boolean("SANDBOX_READ_ONLY", "read_only", readOnly, !readOnly, "its root file system can never be written to")
	}
	if privileged, set := r.flag("SANDBOX_PRIVILEGED"); set {
		r.boolean("SANDBOX_PRIVILEGED", "privileged", privileged, privileged, "it has no privileged sandboxes")
	}
	// The local backend drops all capabilities, and so these too.
	for _, name := range r.list("SANDBOX_CAP_DROP") {
		if r.backend != local {
			r.option("cap_drop", name)
		}
	}
	for _, option := range r.list("SANDBOX_SECURITY_OPT") {
		switch option {
		case "no-new-privileges", "no-new-privileges:true", "no-new-privileges=true":
			if r.backend == local {
				continue // they never get any
			}
		}
		if r.backend == local {
			r.fail("SANDBOX_SECURITY_OPT", "%.40q is an option of container engines, and the backend is local: use the backend docker or podman", option)
			return
		}
		r.option("security_opt", option)
	}
}

// boolean passes one on to an engine. The local backend is never as loose as loose asks.
func (r *reader) boolean(name, key string, value, loose bool, why string) {
	switch {
	case r.backend != local:
		r.option(key, strconv.FormatBool(value))
	case loose && !r.given("runtime-option "+key):
		r.fail(name, "the backend is local, and %s: use the backend docker or podman", why)
	}
}

func (r *reader) option(key, value string) {
	if !r.given("runtime-option " + key) {
		r.s.Options = append(r.s.Options, Option{key, value})
	}
}

// list is a variable's items between commas.
func (r *reader) list(name string) []string {
	var items []string
	for item := range strings.SplitSeq(r.text(name), ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items
}

// defaultNamespace is what others take where the variables name the backend and no
// namespace. Who names the backend by a flag gets the kubeconfig's, as in other commands.
const defaultNamespace = "default"

// namespace reads where the pods are. Other backends have no namespaces, and leave the
// variable alone: its name is not only ours.
func (r *reader) namespace() {
	if r.backend != kubernetes || r.given("namespace") {
		return
	}
	r.s.Namespace = r.text("NAMESPACE")
	if Backend(r.getenv) == kubernetes && !r.given("backend") {
		r.s.Namespace = cmp.Or(r.s.Namespace, defaultNamespace)
	}
}
