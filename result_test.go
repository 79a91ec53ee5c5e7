package llmsandbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/llmsandbox/llmsandbox/artifact"
	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/security"
)

// exact compares what JSON gives back: addresses have no exported fields, and a list that is empty may be nil.
var exact = cmp.Options{cmpopts.EquateComparable(netip.Addr{}), cmpopts.EquateEmpty()}

// TestResultComesBack: JSON gives back a result but for the controls that are enforced, and what is said of those that are not.
func TestResultComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		res := drawResult(t)
		text, err := res.MarshalJSON()
		if err != nil {
			t.Fatalf("write %+v: %v", res, err)
		}
		got := Result{Signal: "SIGTERM", ExitCode: 77, Artifacts: make([]Artifact, 1)} // of which nothing may stay
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatalf("read %s: %v", text, err)
		}
		want := res
		want.Capabilities = backend.Capabilities{}
		for _, name := range res.Capabilities.NotEnforced() {
			want.Capabilities.Controls = append(want.Capabilities.Controls, backend.Control{Name: name})
		}
		if diff := cmp.Diff(want, got, exact); diff != "" {
			t.Fatalf("%s (-want +got):\n%s", text, diff)
		}
		again, err := got.MarshalJSON()
		if err != nil || !bytes.Equal(again, text) {
			t.Fatalf("written again: got %s, %v, want %s", again, err, text)
		}
	})
}

func drawResult(t *rapid.T) Result {
	text, flag := rapid.String(), rapid.Bool()
	lines, data := rapid.SliceOfN(text, 0, 3), rapid.SliceOfN(rapid.Byte(), 0, 20)
	took := rapid.Map(rapid.Int64Range(0, mostMicroseconds), func(us int64) time.Duration { return time.Duration(us) * time.Microsecond })
	count := rapid.IntRange(0, 1000)
	shown := rapid.Custom(func(t *rapid.T) Artifact {
		a := Artifact{
			Name: text.Draw(t, "name"), MIME: text.Draw(t, "mime"), Data: data.Draw(t, "data"), Source: text.Draw(t, "source"),
			Width: count.Draw(t, "width"), DPI: rapid.Float64Range(0, 1000).Draw(t, "dpi"),
		}
		if flag.Draw(t, "chart") {
			a.Chart = &artifact.Chart{Axes: []artifact.Axes{{Title: text.Draw(t, "axes"), Series: []artifact.Series{{Type: "line", X: json.RawMessage(`[1,"a",null]`)}}}}}
			a.Also = []artifact.Form{{MIME: text.Draw(t, "form"), Data: data.Draw(t, "form's data")}}
		}
		return a
	})
	control := rapid.Custom(func(t *rapid.T) backend.Control {
		return backend.Control{Name: text.Draw(t, "control"), Enforced: flag.Draw(t, "enforced"), Why: text.Draw(t, "why")}
	})
	finding := rapid.Custom(func(t *rapid.T) security.Finding {
		return security.Finding{
			Rule: text.Draw(t, "rule"), Severity: rapid.SampledFrom([]security.Severity{security.Safe, security.High}).Draw(t, "severity"),
			Line: count.Draw(t, "line"), Code: text.Draw(t, "code"),
		}
	})
	hint := rapid.Custom(func(t *rapid.T) Hint { return Hint{HintKind(text.Draw(t, "kind")), text.Draw(t, "subject")} })
	return Result{
		Status: Status(text.Draw(t, "status")), ExitCode: rapid.IntRange(-1, 255).Draw(t, "exit code"), Signal: text.Draw(t, "signal"),
		Stdout: text.Draw(t, "stdout"), Stderr: text.Draw(t, "stderr"), StdoutTruncated: flag.Draw(t, "cut"), StderrTruncated: flag.Draw(t, "cut"),
		Duration: took.Draw(t, "duration"), CPU: took.Draw(t, "cpu"), PeakMemory: rapid.Int64().Draw(t, "memory"),
		SandboxID: text.Draw(t, "sandbox"), Backend: text.Draw(t, "backend"), Language: text.Draw(t, "language"),
		Artifacts: rapid.SliceOfN(shown, 0, 2).Draw(t, "artifacts"), ArtifactsDropped: lines.Draw(t, "dropped"),
		Network: rapid.SliceOfN(rapid.Custom(drawAttempt), 0, 2).Draw(t, "network"), NetworkDropped: count.Draw(t, "network dropped"),
		Findings: rapid.SliceOfN(finding, 0, 2).Draw(t, "findings"), Reason: text.Draw(t, "reason"), Hints: rapid.SliceOfN(hint, 0, 2).Draw(t, "hints"),
		Capabilities: backend.Capabilities{Backend: text.Draw(t, "backend"), Controls: rapid.SliceOfN(control, 0, 3).Draw(t, "controls")},
	}
}

func drawAttempt(t *rapid.T) NetworkAttempt {
	text := rapid.String()
	a := NetworkAttempt{
		Time:     time.Unix(rapid.Int64Range(0, 1<<36).Draw(t, "time"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns")).UTC(),
		Protocol: text.Draw(t, "protocol"), Name: text.Draw(t, "name"), Port: rapid.Uint16().Draw(t, "port"), Allowed: rapid.Bool().Draw(t, "allowed"),
		Refused: text.Draw(t, "refused"), Reason: text.Draw(t, "reason"), Sent: rapid.Int64().Draw(t, "sent"), Received: rapid.Int64().Draw(t, "received"),
		Duration: time.Duration(rapid.Int64Range(0, mostMicroseconds).Draw(t, "duration")) * time.Microsecond,
	}
	if size := rapid.SampledFrom([]int{0, 4, 16}).Draw(t, "address size"); size > 0 {
		a.Address, _ = netip.AddrFromSlice(rapid.SliceOfN(rapid.Byte(), size, size).Draw(t, "address"))
	}
	return a
}

// TestNetworkAttemptComesBack: JSON gives back an attempt.
func TestNetworkAttemptComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawAttempt(t)
		text, err := want.MarshalJSON()
		if err != nil {
			t.Fatalf("write %+v: %v", want, err)
		}
		got := NetworkAttempt{Refused: "metadata", Duration: time.Hour}
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatalf("read %s: %v", text, err)
		}
		if diff := cmp.Diff(want, got, exact); diff != "" {
			t.Fatalf("%s (-want +got):\n%s", text, diff)
		}
	})
}

// TestResultThatIsNone: what no result is written as is refused, and changes nothing.
func TestResultThatIsNone(t *testing.T) {
	for text, class := range map[string]error{
		`{"duration_ms": 1e300}`:               ErrInvalid,
		`{"cpu_ms": -1e300}`:                   ErrInvalid,
		`{"network": [{"duration_ms": 1e18}]}`: ErrInvalid,
		`{"network": [{"address": "x"}]}`:      nil,
		`{"exit_code": "0"}`:                   nil,
		`[]`:                                   nil,
	} {
		got := Result{Status: StatusLost, ExitCode: 3}
		err := json.Unmarshal([]byte(text), &got)
		if err == nil || class != nil && !errors.Is(err, class) {
			t.Errorf("%s: got %v, want an error of class %v", text, err, class)
		}
		if got.Status != StatusLost || got.ExitCode != 3 {
			t.Errorf("%s: got %+v, want the result as it was", text, got)
		}
	}
	got := Result{Status: StatusLost}
	if err := json.Unmarshal([]byte("null"), &got); err != nil || got.Status != StatusLost {
		t.Errorf("null: got %+v, %v, want the result as it was", got, err)
	}
}

// FuzzResult: what is read as a result is written as one that reads the same.
func FuzzResult(f *testing.F) {
	for _, seed := range []string{
		`{"status":"ok","exit_code":0,"stdout":"1\n","duration_ms":12.345,"artifacts":[],"not_enforced":["disk"]}`,
		`{"status":"lost","artifacts":[{"name":"a","data":"AP8=","chart":{"axes":[{"series":[{"x":[ 1 , "a"]}]}]}}]}`,
		`{"network":[{"time":"2026-01-02T03:04:05.6+01:00","address":"fe80::1%eth0","port":443}],"findings":[{"severity":"high"}],"hints":[{}]}`,
		`{"duration_ms":1125899906842.624,"cpu_ms":-0.0004}`,
		`null`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var first, second Result
		if json.Unmarshal(text, &first) != nil {
			return
		}
		once, err := first.MarshalJSON()
		if err != nil {
			t.Fatalf("write %+v: %v", first, err)
		}
		if err := json.Unmarshal(once, &second); err != nil {
			t.Fatalf("read %s: %v", once, err)
		}
		if twice, err := second.MarshalJSON(); err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("got %s, %v, want %s", twice, err, once)
		}
	})
}
