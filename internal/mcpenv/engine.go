package mcpenv

import (
	"strconv"
	"strings"
)

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
