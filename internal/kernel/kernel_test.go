package kernel

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

func TestDecode(t *testing.T) {
	three := 3
	for _, c := range []struct {
		name, line string
		want       Event
	}{
		{"ready", `{"event":"ready","language":"python","version":"3","new":1}`, Event{Event: "ready", Language: "python", Version: "3"}},
		{"begun", `{"event":"begun"}`, Event{Event: "begun"}},
		{"error", `{"event":"done","id":4,"status":"error","error":{"name":"E","message":"m","traceback":"t"}}`,
			Event{Event: "done", ID: 4, Status: "error", Failure: &Failure{"E", "m", "t"}}},
		{"exit", `{"event":"done","id":4,"status":"exit","exit_code":3,"state_lost":true}`,
			Event{Event: "done", ID: 4, Status: "exit", ExitCode: &three, StateLost: true}},
		{"refusal", `{"event":"reply","id":1,"error":"no"}`, Event{Event: "reply", ID: 1, Refusal: "no"}},
		{"encoded", `{"event":"reply","id":1,"matches64":["YQ==","YsOk"],"text64":"YQ==","variables":[{"name64":"eA==","type":"int","value64":"MQ=="}]}`,
			Event{Event: "reply", ID: 1, Matches: []string{"a", "bä"}, Text: "a", Variables: []Variable{{"x", "int", "1"}}}},
		{"encoded value", `{"event":"done","id":1,"status":"ok","value64":{"text/plain":"MQ=="}}`,
			Event{Event: "done", ID: 1, Status: "ok", Value: map[string]string{"text/plain": "1"}}},
	} {
		got, err := Decode([]byte(c.line))
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, %v, want no error, got %+v", c.name, got, err, c.want)
		}
	}
	for _, line := range []string{
		``, `null`, `{}`, `[]`, `{"event":"other"}`, `{"event":"done","id":1}`, `{"event":"done","id":-1,"status":"ok"}`,
		`{"event":"done","id":1,"status":"error"}`, `{"event":"done","id":1,"status":"error","error":null}`,
		`{"event":"done","id":1,"status":"exit"}`, `{"event":"done","id":1,"status":"exit","exit_code":256}`,
		`{"event":"done","id":1,"status":"ok","count":-1}`, `{"event":"reply","id":1,"start":3,"end":2}`,
		`{"event":"reply","id":1,"start":-1}`, `{"event":"install","id":1}`, `{"event":"reply","id":1,"text64":"%"}`,
		`{"event":"reply","id":1,"text64":1}`, `{"event":"reply","id":1,"matches64":[1]}`, `{"event":"ready"} {}`, `{"event":"ready","a64":""} {}`,
	} {
		if e, err := Decode([]byte(line)); !errors.Is(err, ErrProtocol) {
			t.Errorf("%s: %+v, %v, want %v", line, e, err, ErrProtocol)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"event":"done","id":4,"status":"error","error":{"name":"E","message":"m","traceback":"t"}}`))
	f.Add([]byte(`{"event":"reply","id":1,"matches64":["YQ=="],"variables":[{"name64":"eA=="}]}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		e, err := Decode(line)
		if (err == nil) == (e.Event == "") {
			t.Errorf("%+v, %v, want err == nil != %v", e, err, e.Event == "")
		}
		if err == nil && e.Status == DoneExit && e.ExitCode == nil {
			t.Errorf("event %+v, want an exit with its code, or an error", e)
		}
	})
}

func TestReader(t *testing.T) {
	ready := `{"event":"ready"}` + "\n"
	r := NewReader(strings.NewReader(ready + ready + `{"event":"re`))
	for range 2 {
		if e, err := r.Next(); err != nil || e.Event != EventReady {
			t.Fatalf("%+v, %v, want no error, Event = EventReady", e, err)
		}
	}
	if e, err := r.Next(); err != io.EOF {
		t.Errorf("half a line: %+v, %v, want io.EOF", e, err)
	}
	if _, err := NewReader(strings.NewReader(strings.Repeat("x", MaxLine+1))).Next(); !errors.Is(err, ErrProtocol) {
		t.Errorf("a long line: %v, want %v", err, ErrProtocol)
	}
	failed := errors.New("failed")
	if _, err := NewReader(io.MultiReader(strings.NewReader("{"), failing{failed})).Next(); !errors.Is(err, failed) {
		t.Errorf("%v, want %v", err, failed)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestRequestLine(t *testing.T) {
	r := Request{Op: OpRun, ID: 7, Code: "a\n\"ä\"", Mark: "m"}
	if got, want := string(r.Line(false)), `{"op":"run","id":7,"code":"a\n\"ä\"","mark":"m"}`+"\n"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := string(r.Line(true)), `{"op":"run","id":7,"mark":"m","code64":"YQoiw6Qi"}`+"\n"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestSplitter writes the output of cells in pieces of any size, with beginnings of
// marks in it, and finds each where it belongs.
func TestSplitter(t *testing.T) {
	const mark = "0123456789abcdef0123456789abcdef"
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		text := func() string {
			parts := []string{"a", "\x00", "\x000123", "\x00" + mark[:31], "b", "\x00\x00", "\x00" + strings.ToUpper(mark)}
			var b strings.Builder
			for range rnd.IntN(6) {
				b.WriteString(parts[rnd.IntN(len(parts))])
			}
			return b.String()
		}
		before, cell, after := text(), text(), text()
		var s Splitter
		s.Write([]byte(before))
		var got bytes.Buffer
		found, lost := s.Begin(mark, &got)
		stream := cell + "\x00" + mark + after
		for len(stream) > 0 {
			n := 1 + rnd.IntN(min(len(stream), 40))
			s.Write([]byte(stream[:n]))
			stream = stream[n:]
		}
		select {
		case <-found:
		default:
			t.Fatalf("seed %d: the mark was not found, want it at the end", seed)
		}
		if got.String() != before+cell || lost {
			t.Fatalf("seed %d: %q, want %q", seed, got.String(), before+cell)
		}
		got.Reset()
		if s.Begin(mark, &got); got.String() != after {
			t.Fatalf("seed %d: then %q, want %q", seed, got.String(), after)
		}
		s.Write([]byte("\x0001"))
		if s.End(); got.String() != after+"\x0001" {
			t.Fatalf("seed %d: %q at the end, want %q", seed, got.String(), after+"\x0001")
		}
	}
}

func TestSplitterIdle(t *testing.T) {
	var s Splitter
	s.Write(make([]byte, keepIdle))
	s.Write([]byte("more"))
	var got bytes.Buffer
	if _, lost := s.Begin("m", &got); !lost || got.Len() != keepIdle {
		t.Errorf("%d bytes, lost %v, want lost = true, Len = %d", got.Len(), lost, keepIdle)
	}
}
