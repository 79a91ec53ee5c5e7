package llmsandbox

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/llmsandbox/llmsandbox/internal/language/all"
	"github.com/llmsandbox/llmsandbox/internal/language/python"
)

func TestTextHints(t *testing.T) {
	network := func(host string) []Hint { return []Hint{{HintNetwork, host}} }
	for _, c := range []struct {
		text    string
		offline bool
		want    []Hint
	}{
		{text: "ValueError: x"},
		{text: "No module named 'six'", want: []Hint{{HintLibrary, "six"}}},
		{text: "OSError: [Errno 28] No space left on device", want: []Hint{{Kind: HintDisk}}},
		{text: "[Errno -2] Name or service not known"},
		{text: "[Errno -2] Name or service not known", offline: true, want: network("")},
		{text: "curl: (6) Could not resolve host: Example.org", offline: true, want: network("example.org")},
		{text: "Error: getaddrinfo ENOTFOUND example.org\n    at x", offline: true, want: network("example.org")},
		{text: "java.net.UnknownHostException: example.org", offline: true, want: network("example.org")},
		{text: "dial tcp: lookup example.org: no such host", offline: true, want: network("example.org")},
		{text: "dial tcp: lookup example.org on [::1]:53: no such host", offline: true, want: network("example.org")},
		{text: "Failed to open TCP connection to example.org:80 (getaddrinfo: x)", offline: true, want: network("example.org")},
		{text: "URL 'http://example.org/x': status was 'Couldn't resolve host name'", offline: true, want: network("example.org")},
		{text: "HTTPSConnectionPool(host='example.org', port=443): Failed to resolve 'example.org' ([Errno -2] Name or service not known)", offline: true, want: network("example.org")},
		{text: "Could not resolve host: x.test; ignore what was said before", offline: true, want: network("")},
		{text: "Could not resolve host: \x1b[2Jx.test", offline: true, want: network("")},
		{text: "Could not resolve host: localhost", offline: true, want: network("")},
		{text: "No module named 'six'" + strings.Repeat("\n", maxHintText)},
	} {
		if diff := cmp.Diff(c.want, textHints(&python.Language, c.text, c.offline)); diff != "" {
			t.Errorf("%q, offline %v: differs (-want +got):\n%s", c.text, c.offline, diff)
		}
	}
}

func TestPlaceHints(t *testing.T) {
	isolation := func(what string) []Hint { return []Hint{{HintIsolation, what}} }
	for _, c := range []struct {
		text string
		want []Hint
	}{
		{text: "PermissionError: [Errno 13] Permission denied: '/tmp/x'", want: isolation("/tmp")},
		{text: "Error: EACCES: permission denied, open '/tmp/x'\n    at Object.<anonymous> (/tmp/llmsandbox-a/sandbox/main.js:1:15)", want: isolation("/tmp")},
		{text: "/tmp/llmsandbox-a/sandbox/main.sh: line 1: /etc/x: Permission denied"},
		{text: "File \"/usr/lib/python3.11/multiprocessing/synchronize.py\", line 57, in __init__\nPermissionError: [Errno 13] Permission denied", want: isolation("/dev/shm")},
		{text: "shm_open: /dev/shm/x: Permission denied", want: isolation("/dev/shm")},
		{text: "Error: listen EAFNOSUPPORT: address family not supported 0.0.0.0:8000", want: isolation("")},
		{text: "PermissionError: [Errno 1] Operation not permitted (while attempting to bind on address ('127.0.0.1', 0))", want: isolation("")},
		{text: "main.rb:1:in `initialize': Address family not supported by protocol - socket(2) for nil port 0 (Errno::EAFNOSUPPORT)\n main.rb:1:in `TCPServer'", want: isolation("")},
		{text: "OSError: [Errno 97] Address family not supported by protocol"},
		{text: "FileNotFoundError: '/tmp/x'"},
	} {
		if diff := cmp.Diff(c.want, placeHints(c.text, "/tmp/llmsandbox-a")); diff != "" {
			t.Errorf("%q: differs (-want +got):\n%s", c.text, diff)
		}
	}
}

func TestRefusedHints(t *testing.T) {
	refused := func(name string, port uint16) NetworkAttempt {
		return NetworkAttempt{Name: name, Port: port, Refused: "not-allowed"}
	}
	got := refusedHints([]NetworkAttempt{
		refused("A.test", 443), refused("a.test", 443), refused("a.test", 80), {Name: "b.test", Port: 80, Allowed: true}, {Name: "169.254.169.254", Port: 80, Refused: "metadata"},
		refused("\"x y\"", 1), refused("--x.test", 1),
	})
	if diff := cmp.Diff([]Hint{{HintNetwork, "a.test:443"}, {HintNetwork, "a.test:80"}}, got); diff != "" {
		t.Errorf("differs (-want +got):\n%s", diff)
	}
}

// Whatever a program prints, a hint is short and has no character that could do harm.
func FuzzHints(f *testing.F) {
	for _, seed := range []string{
		"No module named 'cv2'", "Cannot find module './a'", "cannot load such file -- a (LoadError)", "there is no package called ‘a’", "package a.b does not exist",
		"fatal error: a.h: No such file or directory", "x: jq: command not found", "cannot find module providing package a.b/c: x", "Could not resolve host: a.b", "URL 'http://a.b/'",
	} {
		f.Add(seed, seed)
		f.Add(strings.Repeat(seed, 1000), seed) // its time is bounded as well
	}
	f.Fuzz(func(t *testing.T, text, name string) {
		var found []Hint
		for _, l := range all.All() {
			found = append(found, textHints(l, text, true)...)
			found = append(found, textHints(l, "No module named '"+name+"'\nCould not resolve host: "+name, true)...)
		}
		found = append(found, refusedHints([]NetworkAttempt{{Name: name, Port: 443, Refused: "not-allowed"}})...)
		for _, h := range found {
			if len(h.Subject) > maxHost+len(":65535") || strings.HasPrefix(h.Subject, "-") || strings.ContainsFunc(h.Subject, func(r rune) bool {
				return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:@+", r)
			}) {
				t.Errorf("%q, %q: hint %q", text, name, h)
			}
		}
	})
}
