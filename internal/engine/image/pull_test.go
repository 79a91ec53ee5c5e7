package image

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"go.uber.org/goleak"

	"github.com/llmsandbox/llmsandbox/backend"
)

func TestEachMessage(t *testing.T) {
	for in, want := range map[string]string{
		"":                             "",
		"\r\n\n":                       "",
		`{"status":"a"}` + "\r\n":      "",
		`{"stream":"x"}{"stream":"y"}`: "not understood",
		"<html>":                       "not understood",
		`{"error":"e"}`:                "e",
		`{"errorDetail":{"message":"d\u001b[31m"},"error":"e"}`: "d",
		`{"progressDetail":{"current":"x"}}`:                    "not understood",
		strings.Repeat("x", maxLine+1):                          "has a line of over",
	} {
		err := eachMessage(strings.NewReader(in), func(message) {})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%.60q: %v, want want not empty or no error, want empty or an error containing %q", in, err, want)
		}
	}
	if err := eachMessage(strings.NewReader(`{"error":"e"}`), func(message) {}); !errors.As(err, new(engineError)) {
		t.Errorf("an engine's error is %T, want an error of type engineError", err)
	}
}

// Whatever an engine says, the sums never go down or below zero, and every text in an
// error is short and clean.
func FuzzMessages(f *testing.F) {
	f.Add([]byte(`{"status":"Downloading","id":"a","progressDetail":{"current":5,"total":10}}` + "\n" + `{"status":"Pull complete","id":"a"}`))
	f.Add([]byte(`{"status":"Downloading","id":"a","progressDetail":{"current":9223372036854775807,"total":-1}}` + "\n" + `{"status":"Downloading","id":"b","progressDetail":{"current":9223372036854775807}}`))
	f.Add([]byte(`{"stream":"Step 1/2 : RUN x\n"}` + "\n" + `{"stream":" ---> 0123456789ab\n"}` + "\n" + `{"errorDetail":{"message":"\u001b]0;x\u0007no"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		last := int64(0)
		check := func(p backend.Progress) {
			if p.Current < last || p.Total < p.Current {
				t.Errorf("progress %+v after %d, want Current >= %v, Total >= %v", p, last, last, p.Current)
			}
			last = p.Current
		}
		m, log, left := newMeter("x", check), newBuildLog(nil, func(backend.Progress) {}), &leftovers{}
		err := eachMessage(strings.NewReader(string(data)), func(msg message) {
			m.see(msg)
			log.see(msg)
			left.see(msg)
		})
		m.send()
		if err == nil {
			return
		}
		for _, text := range append(log.last, err.Error(), log.explain(t.Context(), err).Error()) {
			if strings.ContainsAny(text, "\x1b\x07") || len(text) > 20*maxText || !utf8.ValidString(text) {
				t.Errorf("an error says %q, want strings.ContainsAny(text, \"\\x1b\\x07\") = false, len(text) <= %v, utf8.ValidString(text) = true", text, 20*maxText)
			}
		}
	})
}

func TestMeter(t *testing.T) {
	var last backend.Progress
	m := newMeter("x", func(p backend.Progress) { last = p })
	for _, msg := range []message{
		{ID: "a", Status: "Downloading"}, {ID: "b", Status: "Downloading"}, {ID: "b", Status: "Extracting"}, {Status: "Digest: x"},
	} {
		msg.Progress.Current, msg.Progress.Total = 3, 10
		m.see(msg)
	}
	m.see(message{ID: "a", Status: "Download complete"})
	m.see(message{ID: "c", Status: "Already exists"})
	m.send()
	if last != (backend.Progress{Stage: "pull", Message: "x", Current: 13, Total: 20}) {
		t.Errorf("got %+v, want %+v", last, backend.Progress{Stage: "pull", Message: "x", Current: 13, Total: 20})
	}
	for range 2 * maxParts {
		m.see(message{ID: strings.Repeat("y", len(m.parts)), Status: "Downloading"})
	}
	if len(m.parts) > maxParts {
		t.Errorf("it counts %d parts, want at most %d", len(m.parts), maxParts)
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
