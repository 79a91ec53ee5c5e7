package llmsandbox

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestCellJSON(t *testing.T) {
	for want, c := range map[string]Cell{
		`{"status":"ok","duration_ms":1.5,"count":1,"stdout":"a\n","stderr":"","stdout_truncated":false,"stderr_truncated":false,"value":{"text/plain":"2"},"artifacts":[]}`: {
			Status: StatusOK, ExitCode: -1, Count: 1, Stdout: "a\n", Value: map[string]string{"text/plain": "2"}, Duration: 1500 * time.Microsecond,
		},
		`{"status":"error","exit_code":3,"duration_ms":0,"count":2,"stdout":"","stderr":"","stdout_truncated":false,"stderr_truncated":true,"error":{"name":"E","message":"m","traceback":"t"},"artifacts":[],"state_lost":true,"reason":"r"}`: {
			Status: StatusError, Count: 2, ExitCode: 3, StderrTruncated: true, Error: &CellError{Name: "E", Message: "m", Traceback: "t"}, StateLost: true, Reason: "r",
		},
	} {
		got, err := json.Marshal(&c)
		if err != nil || string(got) != want {
			t.Errorf("%s, %v\nwant %s", got, err, want)
		}
	}
}

// TestCellComesBack: JSON gives back a cell.
func TestCellComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		res := drawResult(t)
		want := Cell{
			Status: res.Status, Count: rapid.IntRange(0, 1000).Draw(t, "count"), ExitCode: res.ExitCode, Signal: res.Signal,
			Stdout: res.Stdout, Stderr: res.Stderr, StdoutTruncated: res.StdoutTruncated, StderrTruncated: res.StderrTruncated,
			Value: rapid.MapOfN(rapid.String(), rapid.String(), 0, 2).Draw(t, "value"), Duration: res.Duration,
			Artifacts: res.Artifacts, ArtifactsDropped: res.ArtifactsDropped, Network: res.Network, NetworkDropped: res.NetworkDropped, Findings: res.Findings,
			Interrupted: rapid.Bool().Draw(t, "interrupted"), StateLost: rapid.Bool().Draw(t, "lost"), Restarted: rapid.Bool().Draw(t, "restarted"),
			Reason: res.Reason, Hints: res.Hints,
		}
		if rapid.Bool().Draw(t, "failed") {
			want.Error = &CellError{res.Stdout, res.Stderr, res.Reason}
		}
		text, err := want.MarshalJSON()
		if err != nil {
			t.Fatalf("write %+v: %v", want, err)
		}
		got := Cell{Signal: "SIGTERM", ExitCode: 77, Error: &CellError{}, Value: map[string]string{"a": "b"}} // of which nothing may stay
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatalf("read %s: %v", text, err)
		}
		if diff := cmp.Diff(want, got, exact); diff != "" {
			t.Fatalf("%s (-want +got):\n%s", text, diff)
		}
	})
}

// FuzzCell: what is read as a cell is written as one that reads the same.
func FuzzCell(f *testing.F) {
	for _, seed := range []string{
		`{"status":"ok","count":1,"exit_code":0,"stdout":"1\n","value":{"text/plain":"1"},"duration_ms":12.345,"artifacts":[]}`,
		`{"status":"error","error":{"name":"ZeroDivisionError","message":"division by zero"},"state_lost":true,"duration_ms":-0.0004}`,
		`{"duration_ms":1e300}`, `{"exit_code":"0"}`, `null`, `[]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		first, second := Cell{Reason: "as it was"}, Cell{}
		if err := json.Unmarshal(text, &first); err != nil {
			if first.Reason != "as it was" {
				t.Fatalf("%v: got %+v, want the cell as it was", err, first)
			}
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
