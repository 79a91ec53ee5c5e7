package podexec

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/gorilla/websocket"
)

// A script is a WebSocket whose messages are parts of one text: a byte of kind, one of
// length, and the content.
type script struct{ text []byte }

func (s *script) NextReader() (int, io.Reader, error) {
	if len(s.text) < 2 {
		return 0, nil, &websocket.CloseError{Code: websocket.CloseNormalClosure}
	}
	kind, size := int(s.text[0]), min(int(s.text[1]), len(s.text)-2)
	m := s.text[2 : 2+size]
	s.text = s.text[2+size:]
	return kind, bytes.NewReader(m), nil
}

func message(channel byte, content string) string {
	return string([]byte{websocket.BinaryMessage, byte(len(content) + 1), channel}) + content
}

const success = `{"status":"Success"}`

func TestChannels(t *testing.T) {
	for _, c := range []struct {
		name, in, out, said string
		fails               error
	}{
		{"nothing", "", "", "", nil},
		{"stdout", message(1, "") + message(1, "ab") + message(1, "c") + message(3, success), "abc", "", nil},
		{"stderr between", message(1, "a") + message(2, "oh") + message(1, "b"), "ab", "oh", nil},
		{"a closed channel", message(1, "a") + message(255, "\x01"), "a", "", nil},
		{"unknown channel", message(1, "a") + message(9, "b"), "a", "", errOutOfStep},
		{"its own stdin", message(0, "b"), "", "", errOutOfStep},
		{"no channel", "\x02\x00", "", "", errOutOfStep},
		{"text", "\x01\x03abc", "", "", errOutOfStep},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := new(record)
			out, err := io.ReadAll(&channels{in: &script{[]byte(c.in)}, record: r})
			if string(out) != c.out || r.said() != c.said || !errors.Is(err, c.fails) {
				t.Errorf("%q, said %q, %v; want %q, %q, %v", out, r.said(), err, c.out, c.said, c.fails)
			}
		})
	}
}

func FuzzChannels(f *testing.F) {
	f.Add([]byte(message(1, "") + message(1, "out") + message(2, "err") + message(3, success)))
	f.Add([]byte(message(3, `{"status":"Failure","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"7"}]}}`)))
	f.Add([]byte(message(3, `{"status":"Failure","reason":"InternalError","message":"container not found (\"sandbox\")"}`)))
	f.Add([]byte(message(255, "\x01") + message(7, "x")))
	f.Add([]byte("\x02\x00\x01\xff"))
	f.Fuzz(func(t *testing.T, in []byte) {
		r := new(record)
		out, _ := io.ReadAll(&channels{in: &script{bytes.Clone(in)}, record: r})
		if len(out)+len(r.said())+len(r.status) > len(in) {
			t.Errorf("%d bytes of stdout, %d of stderr and %d of status out of %d", len(out), len(r.said()), len(r.status), len(in))
		}
		if len(r.said()) > maxWords || len(r.status) > maxStatus+1 {
			t.Errorf("%d bytes of stderr, %d of status are kept, want len(r.said()) <= %v, len(r.status) <= %d", len(r.said()), len(r.status), maxWords, maxStatus+1)
		}
		var exit *ExitError
		if err := r.verdict(); errors.As(err, &exit) && len(exit.Stderr) > maxWords {
			t.Errorf("an error of %d bytes, want at most %d", len(exit.Stderr), maxWords)
		}
	})
}

func FuzzVerdict(f *testing.F) {
	for _, s := range []string{
		"", success, `{}`, `{"status":"Failure"}`, `nonsense`,
		`{"status":"Failure","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"7"}]}}`,
		`{"status":"Failure","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"-"}]}}`,
		`{"status":"Failure","reason":"NonZeroExitCode"}`,
		`{"status":"Failure","reason":"InternalError","message":"exec: \"x\": executable file not found in $PATH"}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, words []byte) {
		err := verdict(words, "")
		if err == nil && !bytes.Contains(bytes.ToLower(words), []byte("success")) && !bytes.Contains(words, []byte(`\u`)) {
			t.Errorf("%q counts as success, want an error", words)
		}
	})
}
