package mcp

import (
	"slices"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/language/all"
)

// TestDeclaredLanguage: clients have a language that a file declares.
func TestDeclaredLanguage(t *testing.T) {
	const file = `name = "ownlanguage"
title = "Own"
programs = [["sh"]]
install = "it is there"
main = "main.own"
run = ["sh", "{main}"]
[details]
version = ["sh", "-c", "echo own 1.0"]
untested = true
[[details.examples]]
title = "Hello"
code = "echo 'Hello from Own!'"
[[details.examples]]
title = "Count"
code = "seq 3"
`
	if _, err := all.LoadText("own.toml", []byte(file)); err != nil {
		t.Fatal(err)
	}
	client := connect(t, newServer(t, Config{Languages: []string{"ownlanguage", "python"}}), nil)
	list := decode[[]string](t, use(t, client, "get_supported_languages", nil))
	if want := []string{"ownlanguage", "python"}; !slices.Equal(list, want) {
		t.Errorf("got %q, want %q", list, want)
	}
	d := decode[languageDetails](t, use(t, client, "get_language_details", args{"language": "ownlanguage"}))
	if d.Version != "own 1.0" || d.Stateful || len(d.Examples) != 2 || d.Note != "This language was not tested with the sandbox." {
		t.Errorf("got %+v, want what the file declares", d)
	}
	out := decode[outcome](t, use(t, client, "execute_code", args{"language": "ownlanguage", "code": "echo $((6 * 7))"}))
	if out.Status != "ok" || out.Stdout != "42\n" {
		t.Errorf("got %+v, want 42", out)
	}
}
