package apitypes

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestFileComesBack: JSON gives back any content, and has what is text as a string.
func TestFileComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.OneOf(rapid.SliceOf(rapid.Byte()), rapid.Map(rapid.String(), func(s string) []byte { return []byte(s) })).Draw(t, "content")
		text, err := json.Marshal(File(want))
		if err != nil {
			t.Fatal(err)
		}
		var got File
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatalf("read %s: %v", text, err)
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("%s: got %q, want %q", text, got, want)
		}
	})
	for content, want := range map[string]string{"é": `"é"`, "\xff": `{"base64":"/w=="}`, "": `""`, "<&>": `"<&>"`} {
		if got, err := File(content).MarshalJSON(); err != nil || string(got) != want {
			t.Errorf("%q: got %s, %v, want %s", content, got, err, want)
		}
	}
}

// FuzzFile: what is read as a file is written as one that reads the same.
func FuzzFile(f *testing.F) {
	for _, seed := range []string{`"a"`, `{"base64": "AP8="}`, `{"base64": null}`, `null`, `{`, `"\ud800"`, `{"base64": "AA"}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var first, second File
		if json.NewDecoder(strings.NewReader(text)).Decode(&first) != nil {
			return
		}
		once, err := json.Marshal(first)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(once, &second); err != nil || !bytes.Equal(first, second) {
			t.Fatalf("%s: got %q, %v, want %q", once, second, err, first)
		}
	})
}
