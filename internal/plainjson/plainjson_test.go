package plainjson

import "testing"

func TestMarshal(t *testing.T) {
	got, err := Marshal(map[string]any{"a": "<b> & \"c\"\n"})
	if want := `{"a":"<b> & \"c\"\n"}`; string(got) != want || err != nil {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
	if got, err := Marshal(func() {}); err == nil {
		t.Errorf("of a function: got %s, no error", got)
	}
	if got, want := Inside("<a>\n\""), `<a>\n\"`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
