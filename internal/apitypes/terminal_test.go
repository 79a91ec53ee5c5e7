package apitypes

import (
	"encoding/json"
	"testing"
)

func TestParseTerminalInput(t *testing.T) {
	for text, want := range map[string]TerminalSize{
		`{"resize":{"cols":80,"rows":24}}`: {80, 24}, ` {"resize": {"rows": 1, "cols": 1000}} `: {1000, 1},
		``: {}, `{}`: {}, `null`: {}, `[]`: {}, `{"resize":null}`: {}, `{"resize":{}}`: {}, `{"resize":{"cols":80}}`: {}, `{"resize":{"cols":0,"rows":1}}`: {},
		`{"resize":{"cols":1001,"rows":1}}`: {}, `{"resize":{"cols":-1,"rows":1}}`: {}, `{"resize":{"cols":65537,"rows":1}}`: {}, `{"resize":{"cols":1,"rows":1},"x":1}`: {},
		`{"resize":{"cols":1,"rows":1}}{}`: {}, `{"resize":{"cols":1,"rows":1}}x`: {}, `{"resize":{"cols":1.5,"rows":1}}`: {},
	} {
		in, err := ParseTerminalInput([]byte(text))
		if want == (TerminalSize{}) {
			if err == nil {
				t.Errorf("%s: got %+v, want an error", text, in)
			}
			continue
		}
		if err != nil || *in.Resize != want {
			t.Errorf("%s: got %+v, %v, want %v", text, in, err, want)
		}
	}
}

// FuzzParseTerminalInput: what is taken is a size within the bounds, and is read again from what it is written as.
func FuzzParseTerminalInput(f *testing.F) {
	for _, seed := range []string{`{"resize":{"cols":80,"rows":24}}`, `{"resize":null}`, `{"resize":{"cols":1e2,"rows":1}} `, `{"resize":{"cols":1,"rows":1}}{}`, "\xff"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		in, err := ParseTerminalInput(text)
		if err != nil {
			return
		}
		if s := in.Resize; s.Cols < 1 || s.Cols > MaxTerminalSize || s.Rows < 1 || s.Rows > MaxTerminalSize {
			t.Fatalf("%q: got %+v, want a size within the bounds", text, s)
		}
		b, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := ParseTerminalInput(b); err != nil || *again.Resize != *in.Resize {
			t.Fatalf("%q: written as %s, and read again as %+v, %v: want the same", text, b, again, err)
		}
	})
}
