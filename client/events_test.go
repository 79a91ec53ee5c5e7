package client

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/llmsandbox/llmsandbox"
)

// allEvents reads a stream to its end.
func allEvents(r io.Reader, most int64) (all []event, err error) {
	events := newEventReader(r, most)
	for {
		e, err := events.next()
		if err != nil {
			return all, err
		}
		all = append(all, e)
	}
}

// TestEvents: events are read as the standard says, however they come.
func TestEvents(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	for text, want := range map[string][]event{
		"":                             nil,
		"event: a\ndata: b\n\n":        {{name: "a", data: []byte("b")}},
		"event:a\r\ndata:b\r\n\r\n":    {{name: "a", data: []byte("b")}},
		"data:  b\nevent: a\n\n":       {{name: "a", data: []byte(" b")}},
		"data: a\ndata\ndata: b\n\n":   {{name: "", data: []byte("a\n\nb")}},
		"data\n\n":                     {{name: "", data: nil}},
		"event: a\n\ndata: b\n\n":      {{name: "", data: []byte("b")}},
		":\n\n: c\nid: 1\ndata: b\n\n": {{id: "1", data: []byte("b")}},
		"data: a\n\ndata: b\n":         {{name: "", data: []byte("a")}},
		"data: a\n\ndata: b":           {{name: "", data: []byte("a")}},
		"data: " + long + "\n\n":       {{name: "", data: []byte(long)}},
	} {
		for _, r := range []io.Reader{strings.NewReader(text), iotest.OneByteReader(strings.NewReader(text)), iotest.DataErrReader(strings.NewReader(text))} {
			if got, err := allEvents(r, 1<<20); !reflect.DeepEqual(got, want) || !errors.Is(err, io.EOF) {
				t.Errorf("%.60q: got %.200q, %v, want %.200q", text, got, err, want)
			}
		}
	}
	if got, err := allEvents(iotest.TimeoutReader(iotest.OneByteReader(strings.NewReader("data: a\n\n"))), 100); len(got) != 0 || !errors.Is(err, iotest.ErrTimeout) {
		t.Errorf("got %q, %v, want the reader's error", got, err)
	}
}

// TestEventsAreBounded: an event may be of exactly so many bytes, and each of them anew.
func TestEventsAreBounded(t *testing.T) {
	const one = "data: aa\n\n"
	if got, err := allEvents(strings.NewReader(one+one+one), int64(len(one))); len(got) != 3 || !errors.Is(err, io.EOF) {
		t.Errorf("got %q, %v, want three", got, err)
	}
	if got, err := allEvents(strings.NewReader(strings.Repeat(":\n\n", 100)+one), int64(len(one))); len(got) != 1 || !errors.Is(err, io.EOF) {
		t.Errorf("behind comments: got %q, %v, want one", got, err)
	}
	for _, text := range []string{one, strings.Repeat("x", 1000), "data: aaa", "d\nd\nd\nd\nd\nd\n"} {
		if got, err := allEvents(strings.NewReader(text), int64(len(one))-1); len(got) != 0 || text != "data: aaa" && !errors.Is(err, errEventTooLong) {
			t.Errorf("%.20q: got %q, %v, want errEventTooLong", text, got, err)
		}
	}
}

// FuzzEvents: no stream is read differently for how it is cut, or gives more than it has.
func FuzzEvents(f *testing.F) {
	for _, seed := range []string{"event: a\ndata: b\n\n", ":\r\n\r\ndata\ndata:\n\n", "data: b", "\n\n\n", "event: result\ndata: {}\n\ndata: \xff\x00\n\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		const most = 1 << 10
		got, err := allEvents(strings.NewReader(string(text)), most)
		again, err2 := allEvents(iotest.OneByteReader(strings.NewReader(string(text))), most)
		if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", again) || !errors.Is(err2, io.EOF) && !errors.Is(err, errEventTooLong) || errors.Is(err, io.EOF) != errors.Is(err2, io.EOF) {
			t.Fatalf("got %q, %v at once, and %q, %v byte by byte, want the same", got, err, again, err2)
		}
		size := 0
		for _, e := range got {
			if len(e.data) > most {
				t.Fatalf("got %d bytes in an event, want at most %d", len(e.data), most)
			}
			size += len(e.name) + len(e.data)
		}
		if size > len(text) {
			t.Fatalf("got %d bytes, want at most the %d that there are", size, len(text))
		}
	})
}

// TestLimited: a buffer takes what it has room for, and fails at the rest.
func TestLimited(t *testing.T) {
	l := limited{room: 3}
	if n, err := l.Write([]byte("abc")); n != 3 || err != nil {
		t.Errorf("got %d, %v, want 3", n, err)
	}
	if n, err := l.Write([]byte("d")); n != 0 || !errors.Is(err, llmsandbox.ErrTooLarge) || l.kept.String() != "abc" {
		t.Errorf("got %d, %v, %q, want ErrTooLarge and abc", n, err, &l.kept)
	}
}

// TestRetryAfter: both forms, and what is neither.
func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for text, want := range map[string]struct {
		after time.Duration
		ok    bool
	}{
		"0": {0, true}, "30": {30 * time.Second, true}, "31": {31 * time.Second, false}, "": {}, "-1": {}, "x": {}, "99999999999999999999": {},
		"Fri, 02 Jan 2026 03:04:15 GMT": {10 * time.Second, true}, "Fri, 02 Jan 2026 03:04:00 GMT": {0, true}, "Fri, 02 Jan 2026 04:04:00 GMT": {59*time.Minute + 55*time.Second, false},
	} {
		h := http.Header{"Retry-After": {text}}
		if after, ok := retryAfter(h, now); after != want.after || ok != want.ok {
			t.Errorf("%q: got %v, %t, want %v, %t", text, after, ok, want.after, want.ok)
		}
	}
}
