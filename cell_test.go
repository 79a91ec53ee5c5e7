package llmsandbox

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"
)

func TestCellJSON(t *testing.T) {
	for want, c := range map[string]Cell{
		`{"status":"ok","count":1,"stdout":"a\n","stderr":"","stdout_truncated":false,"stderr_truncated":false,"value":{"text/plain":"2"},"duration_ms":1.5,"artifacts":[]}`: {
			Status: StatusOK, ExitCode: -1, Count: 1, Stdout: "a\n", Value: map[string]string{"text/plain": "2"}, Duration: 1500 * time.Microsecond,
		},
		`{"status":"error","count":2,"exit_code":3,"stdout":"","stderr":"","stdout_truncated":false,"stderr_truncated":true,"error":{"name":"E","message":"m","traceback":"t"},"duration_ms":0,"artifacts":[],"state_lost":true,"reason":"r"}`: {
			Status: StatusError, Count: 2, ExitCode: 3, StderrTruncated: true, Error: &CellError{Name: "E", Message: "m", Traceback: "t"}, StateLost: true, Reason: "r",
		},
	} {
		got, err := json.Marshal(&c)
		if err != nil || string(got) != want {
			t.Errorf("%s, %v\nwant %s", got, err, want)
		}
	}
}

// A field that Cell gets has to get its name in JSON, too.
func TestCellJSONHasAllFields(t *testing.T) {
	names := map[string]bool{"DurationMS": true}
	for f := range reflect.TypeFor[cellJSON]().Fields() {
		names[f.Name] = true
	}
	for f := range reflect.TypeFor[Cell]().Fields() {
		if f.Name != "Duration" && !names[f.Name] {
			t.Errorf("%s is not in a cell's JSON, want Name = \"Duration\" or names[f.Name] = true", f.Name)
		}
	}
}
