package javascript

import (
	"encoding/base64"
	"net/url"
	"strings"
)

// moduleName is the name of the module that a program writes so.
func moduleName(text string) string {
	if len(text) > 5 && strings.EqualFold(text[:5], "node:") {
		return text[5:]
	}
	return text
}

// builtinOf is the module that gives what one of Node's own parts does.
func builtinOf(binding string) string {
	switch binding {
	case "spawn_sync", "process_wrap":
		return "child_process"
	case "tcp_wrap", "pipe_wrap", "stream_wrap":
		return "net"
	case "udp_wrap":
		return "dgram"
	case "cares_wrap":
		return "dns"
	case "contextify":
		return "vm"
	case "fs_dir", "fs_event_wrap":
		return "fs"
	case "tls_wrap":
		return "tls"
	case "worker":
		return "worker_threads"
	}
	return binding
}

// dataCode is the code in an address that holds a module itself.
func dataCode(address string) (string, bool) {
	if len(address) < 5 || !strings.EqualFold(address[:5], "data:") {
		return "", false
	}
	kind, data, _ := strings.Cut(address[5:], ",")
	if plain, err := url.PathUnescape(data); err == nil {
		data = plain
	}
	if strings.HasSuffix(strings.ToLower(strings.TrimSpace(kind)), ";base64") {
		if code, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(data, "=")); err == nil {
			data = string(code)
		}
	}
	return data, true
}

// libraryName is the package that an entry of a list of libraries asks for.
func libraryName(canonical string) string {
	name := canonical
	if at := strings.LastIndexByte(name, '@'); at > 0 {
		name = name[:at]
	}
	return strings.ToLower(name)
}
