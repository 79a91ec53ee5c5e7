package podman

import (
	"strings"
	"testing"
)

func TestParseTOML(t *testing.T) {
	const text = "# containers.conf\n" +
		"top = \"of all\" # said of it\n" +
		"[containers]\r\n" +
		"default_ulimits = [\n  \"nofile=1:2\", # a ] in a comment\n  'nproc=]',\n]\n" +
		"annotations = \"\"\"several\n[lines] = \\\"\"\"\n\"\"\"\n" +
		"[engine]\n" +
		"active_service = \"a.b\"\n" +
		"volume_path = 'C:\\dir'\n" +
		"  [engine . service_destinations.\"a.b\"]\n" +
		"  uri=\"ssh://u@h:22/run/p.sock\"\n" +
		"  is_machine = true # yes\n" +
		"[[farm]]\nname = {x = 1, y = \"}\"}\n"
	values, err := parseTOML(text)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, v := range values {
		kind := map[int]string{textTOML: "", inlineTOML: "inline", otherTOML: "other"}[v.kind]
		got[strings.Join(v.key, "/")] = kind + v.text
	}
	want := map[string]string{
		"top": "of all", "containers/default_ulimits": "other", "containers/annotations": "other",
		"engine/active_service": "a.b", "engine/volume_path": `C:\dir`,
		"engine/service_destinations/a.b/uri": "ssh://u@h:22/run/p.sock", "engine/service_destinations/a.b/is_machine": "true",
		"farm/name": "inline",
	}
	for k, v := range want {
		if got[k] != v {
			t.Errorf("%s is %q, want %q", k, got[k], v)
		}
	}
	if len(got) != len(want) {
		t.Errorf("got %q", got)
	}
}

func TestParseTOMLErrors(t *testing.T) {
	for text, want := range map[string]string{
		"\n[engine":           "line 2: the table's name has to end with ]",
		"[a] b = 1":           `line 1: "b = 1" follows on the line`,
		"[a]\nb":              "line 2: the key b has no value",
		"b =\nc = 1":          "line 1: a value is missing",
		"b = \"open\nc = 1":   "line 1: a string does not end on its line",
		"b = \"\"\"open":      "line 1: a string does not end",
		"b = [1, [2]":         "line 1: an array or a table in braces does not end",
		"= 1":                 "line 1: a key is missing",
		`b = "\q"`:            `line 1: the string "\q" is not understood`,
		"b = 'a' 'c'":         `follows on the line`,
		"b = { c = \"open\n}": "a string does not end on its line",
	} {
		_, err := parseTOML(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

// What is read has a key, and a line that is in the text.
func FuzzParseTOML(f *testing.F) {
	f.Add("[engine]\nactive_service = \"x\"\n[engine.service_destinations.x]\nuri = 'unix:///p'\n")
	f.Add("a = [1, \"]\", '''x''']\nb = {c = 1}\n\"q\".'r' = \"\\u00e9\" # c")
	f.Add("a = \"\"\"x\\\"\"\"\"\"\n[[b]]\r\n")
	f.Add("\\\"'[{=#")
	f.Fuzz(func(t *testing.T, text string) {
		values, err := parseTOML(text)
		if err != nil {
			return
		}
		lines := strings.Count(text, "\n") + 1
		for _, v := range values {
			if len(v.key) == 0 || v.line < 1 || v.line > lines {
				t.Fatalf("%q has the key %q on line %d", text, v.key, v.line)
			}
		}
	})
}
