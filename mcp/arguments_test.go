package mcp

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Whatever arguments say, a tool that needs a session without one answers with a short error.
func FuzzArguments(f *testing.F) {
	client := connect(f, newServer(f, Config{Warm: -1}), nil)
	for _, seed := range []string{
		`{}`, `{"session_id":"x","code":"1"}`, `{"session_id":"x","code":"1","timeout":-1}`, `{"session_id":"x","code":"1","Timeout":1e300}`,
		`{"session_id":null,"code":[{"a":{}}]}`, `{"session_id":"\u001b[2J\u202e","code":"1"}`, `{"\u001b]0;x\u0007":1}`,
		`{"session_id":"` + strings.Repeat("x", 5000) + `","code":"1"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var object map[string]any
		if json.Unmarshal(in, &object) != nil {
			return // it never gets to a tool
		}
		res, err := client.CallTool(testContext(t), &sdk.CallToolParams{Name: "run_in_session", Arguments: object})
		if err != nil {
			return // refused by the protocol
		}
		if got := failure(t, res); len(got) > 3000 || !utf8.ValidString(got) || strings.ContainsAny(got, "\x1b\x07\u202e") {
			t.Fatalf("%q: %q", in, got)
		}
	})
}

func FuzzCancelled(f *testing.F) {
	for _, seed := range []string{`{"requestId":1}`, `{"requestId":"a"}`, `{"requestId":{}}`, `{"requestId":1e400}`, `[]`, ``} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(_ *testing.T, params []byte) {
		delete(map[jsonrpc.ID]bool{}, cancelled(params)) // any id can be looked up
	})
}

func FuzzPiece(f *testing.F) {
	f.Add([]byte("héllo"), int64(1), int64(3))
	f.Add([]byte("\xff\x00"), int64(0), int64(10))
	f.Add([]byte("é"), int64(1), int64(1))
	f.Fuzz(func(t *testing.T, file []byte, offset, most int64) {
		offset, most = max(offset%100, 0), max(most%100, 1)
		w := &window{skip: offset, most: most}
		for _, b := range file { // in the smallest chunks
			if _, err := w.Write([]byte{b}); err != nil {
				break
			}
		}
		want := file[min(int(offset), len(file)):]
		want = want[:min(int(most), len(want))]
		if string(w.bytes) != string(want) {
			t.Fatalf("%q, want %q", w.bytes, want)
		}
		out := fileContent{Size: int64(len(file)), Offset: offset}
		out.take(w.bytes, "text/plain")
		if !utf8.ValidString(out.Content) || out.Bytes > most || out.Bytes == 0 && len(want) > 0 {
			t.Fatalf("%q at %d: %+v", file, offset, out)
		}
		if out.Next != 0 && out.Next <= offset {
			t.Fatalf("reading does not go on: %+v", out)
		}
	})
}
