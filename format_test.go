package llmsandbox

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/llmsandbox/llmsandbox/backend"
)

func TestString(t *testing.T) {
	for want, v := range map[string]any{
		"ok, exit code 0, 21ms, stdout 3 bytes, stderr 0 bytes, artifacts 1": &Result{
			Status: StatusOK, Duration: 21234 * time.Microsecond, Stdout: "hi\n", Artifacts: []Artifact{{}},
		},
		"killed, SIGSEGV, 1s, stdout 0 bytes, stderr 1 bytes (truncated)": Result{
			Status: StatusKilled, ExitCode: -1, Signal: "SIGSEGV", Duration: time.Second, Stderr: "x", StderrTruncated: true,
		},
		"setup_failed: no such thing":                      &Result{Status: StatusSetupFailed, ExitCode: -1, Reason: "no such\n\x1b[2J thing"},
		"error, 2ms, stdout 0 bytes, stderr 0 bytes: E: m": &Cell{Status: StatusError, ExitCode: -1, Duration: 2 * time.Millisecond, Error: &CellError{Name: "E", Message: "m"}},
		"figure-1.png (image/png, 3x2, 4 bytes)":           Artifact{Name: "figure-1.png", MIME: "image/png", Width: 3, Height: 2, Data: []byte("1234")},
		"local (namespaces): 1 of 2 controls enforced; not enforced: disk": backend.Capabilities{
			Backend: "local", Isolation: "namespaces", Controls: []backend.Control{{Name: "memory", Enforced: true}, {Name: "disk"}},
		},
		"docker: 0 of 0 controls enforced": backend.Capabilities{Backend: "docker"},
	} {
		for _, got := range []string{fmt.Sprint(v), fmt.Sprintf("%v", v), fmt.Sprintf("%s", v)} {
			if got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
	}
	long := Result{Status: StatusLost, ExitCode: -1, Reason: strings.Repeat("ü\x00", 1000)}
	if got := long.String(); len(got) > 300 || !utf8.ValidString(got) {
		t.Errorf("%d bytes, valid %v, want at most 300, true", len(got), utf8.ValidString(got))
	}
	if got := fmt.Sprintf("%+v", Result{Stdout: "all of it"}); !strings.Contains(got, "Stdout:all of it") {
		t.Errorf("%%+v: %q, want every field", got)
	}
}

// TestResultJSON: what a result of print(1) is in JSON, and that nothing is escaped for HTML.
func TestResultJSON(t *testing.T) {
	controls := []backend.Control{{Name: "memory", Enforced: true, By: "cgroup v2"}, {Name: "disk"}}
	res := Result{
		Status: StatusOK, Stdout: "<&>\n", Duration: time.Second, SandboxID: "sb-0123456789abcdef", Backend: "local", Language: "python",
		Network: []NetworkAttempt{{Name: "<a>"}}, Capabilities: backend.Capabilities{Controls: controls},
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	err := enc.Encode(res)
	for _, want := range []string{`"stdout":"<&>\n"`, `"name":"<a>"`, `"not_enforced":["disk"]`} {
		if err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("%s, %v, want %s", out.String(), err, want)
		}
	}
	res.Network = nil
	if text, err := res.MarshalJSON(); err != nil || len(text) > 450 || strings.Contains(string(text), "cgroup") {
		t.Errorf("%s, %v, want at most 450 bytes without capabilities", text, err)
	}
}
