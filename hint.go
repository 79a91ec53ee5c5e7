package llmsandbox

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/egress"
	"github.com/llmsandbox/llmsandbox/internal/language"
)

// A Hint is what may help a run that failed. Status and Reason come from what the kernel and the
// agent observed. A hint may also come from what the program printed, so a program can make
// one up: look at a library before you install it, and at a host before you allow it.
type Hint struct {
	Kind HintKind `json:"kind"`
	// Subject is the library, file or host that Kind is about, or empty. It has at most 253 bytes:
	// ASCII letters and digits, and of punctuation only - _ . / : @ and +.
	Subject string `json:"subject,omitempty"`
}

// A HintKind is what a hint is about.
type HintKind string

// The kinds of hints.
const (
	// HintLibrary: a module is missing. Subject is the library that probably has it, as
	// Options.Libraries takes it.
	HintLibrary HintKind = "library"
	// HintFile: a file of the program is missing. Subject is its base name, with or without an ending.
	HintFile HintKind = "file"
	// HintNetwork: the sandbox has no network, or its rules do not allow a host. Subject is the
	// rule that would allow it, as Network.Allow takes it; empty where the host is not known.
	HintNetwork HintKind = "network"
	// HintTimeout: the run needs a longer timeout.
	HintTimeout HintKind = "timeout"
	// HintMemory: the sandbox needs a higher memory limit.
	HintMemory HintKind = "memory"
	// HintOutput: the program wrote more than Limits.Output.
	HintOutput HintKind = "output"
	// HintDisk: the disk of the sandbox is full.
	HintDisk HintKind = "disk"
	// HintIsolation: the program takes what only the isolation namespace gives it. Subject is /tmp or /dev/shm, or empty for
	// a port to listen on.
	HintIsolation HintKind = "isolation"
)

// Bounds on hints.
const (
	maxHints    = 5
	maxHintText = 32 << 10 // of what is read, from its end
	maxHost     = 253
)

// hints returns what may help a run with this end. text is what the program printed of its failure.
func (s *Sandbox) hints(lang *language.Language, status Status, text string, network []NetworkAttempt) []Hint {
	switch status {
	case StatusTimeout:
		return append(refusedHints(network), Hint{Kind: HintTimeout})
	case StatusOutOfMemory:
		return []Hint{{Kind: HintMemory}}
	case StatusOutputLimit:
		return []Hint{{Kind: HintOutput}}
	case StatusError:
		hints := append(refusedHints(network), textHints(lang, text, s.offline())...)
		if s.Capabilities().Isolation == "process" {
			hints = append(hints, placeHints(text, filepath.Dir(s.Workdir()))...)
		}
		return hints
	}
	return nil
}

// offline reports whether it is known that the sandbox has no network.
func (s *Sandbox) offline() bool {
	n := s.net.supervised.Load()
	if s.net.Served() != nil || !s.net.owner && (n == nil || n.Mode != NetworkNone) {
		return false
	}
	c, _ := s.Capabilities().Get("network")
	return c.Enforced
}

// refusedHints are about hosts that the rules do not allow.
func refusedHints(network []NetworkAttempt) []Hint {
	var hints []Hint
	seen := map[string]bool{}
	for _, a := range network {
		host := strings.ToLower(a.Name)
		rule := fmt.Sprintf("%s:%d", host, a.Port)
		if a.Refused != string(egress.RefusedNotAllowed) && a.Refused != string(egress.RefusedNoNetwork) || !isHost(host) || seen[rule] || len(hints) == maxHints {
			continue
		}
		seen[rule] = true
		hints = append(hints, Hint{HintNetwork, rule})
	}
	return hints
}

// textHints are what the program's own words lead to; lang may be nil.
func textHints(lang *language.Language, text string, offline bool) []Hint {
	var hints []Hint
	text = text[max(0, len(text)-maxHintText):]
	if lang != nil {
		switch library, file := lang.FindMissing(text); {
		case library != "":
			hints = append(hints, Hint{HintLibrary, library})
		case file != "":
			hints = append(hints, Hint{HintFile, file})
		}
	}
	if offline && containsAny(text, noNetwork) {
		hints = append(hints, Hint{HintNetwork, missedHost(text)})
	}
	if containsAny(text, diskFull) {
		hints = append(hints, Hint{Kind: HintDisk})
	}
	return hints
}

// placeHints are about what code has of its own in a namespace only. own is the directory that it has instead.
func placeHints(text, own string) []Hint {
	text = strings.ReplaceAll(text[max(0, len(text)-maxHintText):], own, "")
	denied := containsAny(text, []string{"ermission denied", "EACCES", "AccessDeniedException"})
	switch {
	case denied && containsAny(text, []string{"/dev/shm", "multiprocessing/synchronize.py"}):
		return []Hint{{HintIsolation, "/dev/shm"}}
	case denied && strings.Contains(text, "/tmp"):
		return []Hint{{HintIsolation, "/tmp"}}
	case containsAny(text, []string{"ddress family not supported", "EAFNOSUPPORT", "peration not permitted", "EPERM"}) && containsAny(text, []string{"listen", "bind", "create_server", "ServerSocket", "TCPServer"}):
		return []Hint{{Kind: HintIsolation}}
	}
	return nil
}

func containsAny(text string, parts []string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
}

// What programs print when there is no network, and when a disk is full.
var (
	noNetwork = []string{
		"Name or service not known", "Temporary failure in name resolution", "Temporary failure resolving", "Could not resolve host", "Couldn't resolve host",
		"unable to resolve host", "getaddrinfo", "UnknownHostException", "no such host", "Network is unreachable", "Failed to open TCP connection",
	}
	diskFull = []string{"No space left on device", "no space left on device", "Disk quota exceeded", "ENOSPC"}
)

// hostsIn is what stands before and behind the host in such a message.
var hostsIn = [][2]string{
	{"Could not resolve host: ", ""}, {"getaddrinfo ENOTFOUND ", ""}, {"getaddrinfo EAI_AGAIN ", ""}, {"UnknownHostException: ", ""},
	{"dial tcp: lookup ", ":"}, {"dial tcp: lookup ", " on "}, {"Failed to open TCP connection to ", ":"}, {"Failed to resolve '", "'"}, {"(host='", "'"},
	{"resolve host address ‘", "’"}, {"URL 'http://", "/"}, {"URL 'https://", "/"},
}

// missedHost returns the host of the last such message.
func missedHost(text string) string {
	lines := strings.Split(text, "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		for _, h := range hostsIn {
			if host := strings.ToLower(language.Between(lines[i], h[0], h[1])); isHost(host) {
				return host
			}
		}
	}
	return ""
}

// isHost reports whether a text is a public host's name and nothing else.
func isHost(host string) bool {
	if len(host) > maxHost || !strings.Contains(host, ".") {
		return false
	}
	for label := range strings.SplitSeq(host, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for i := range len(label) {
			if c := label[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
				return false
			}
		}
	}
	return true
}
