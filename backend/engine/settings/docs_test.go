package settings

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the generated part of docs/runtime-options.md")

// The documentation lists every key, as it is.
func TestDocs(t *testing.T) {
	const file = "../../../docs/runtime-options.md"
	const mark = "-run TestDocs -update -->\n"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	written, _, found := strings.Cut(string(text), mark)
	if !found {
		t.Fatalf("%s has no line with %q, want one", file, mark)
	}
	want := written + mark + keysMarkdown()
	if want == string(text) {
		return
	}
	if !*update {
		t.Fatalf("%s differs from the table of the keys, want it the same: run go test ./backend/engine/settings -run TestDocs -update", file)
	}
	if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

func keysMarkdown() string {
	var b strings.Builder
	group := ""
	for _, k := range Keys() {
		if k.Group != group {
			group = k.Group
			fmt.Fprintf(&b, "\n### %s\n\n| key | type | meaning | example |\n| --- | --- | --- | --- |\n", strings.ToUpper(group[:1])+group[1:])
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | `%s` |\n", k.Name, k.Type, strings.ReplaceAll(k.Meaning, "|", `\|`), k.Example)
	}
	b.WriteString("\n### Keys of docker-py that a sandbox refuses\n\n| key | why, and what to do |\n| --- | --- |\n")
	for _, name := range slices.Sorted(maps.Keys(decided)) {
		fmt.Fprintf(&b, "| `%s` | %s |\n", name, decided[name])
	}
	return b.String()
}
