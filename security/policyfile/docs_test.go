package policyfile

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/security"
)

// The policies and the table of built-in ones in the documentation are what is there.
func TestDocumentation(t *testing.T) {
	data, err := os.ReadFile("../../docs/security-policies.md")
	if err != nil {
		t.Fatal(err)
	}
	doc := string(data)
	found := 0
	for _, m := range regexp.MustCompile("(?s)```(yaml|json)\n(.*?)```").FindAllStringSubmatch(doc, -1) {
		parse := map[string]func([]byte) (security.Policy, error){"yaml": ParseYAML, "json": ParseJSON}[m[1]]
		p, err := parse([]byte(m[2]))
		if err == nil {
			_, err = security.Compile(p)
		}
		if err != nil {
			t.Errorf("%v in\n%s", err, m[2])
		}
		found++
	}
	if found < 2 {
		t.Errorf("there are %d policies, want at least 2", found)
	}
	for _, name := range security.Presets() {
		p, err := security.Preset(name)
		if err != nil {
			t.Fatal(err)
		}
		if row := "| `" + name + "` | " + p.Threshold.String() + " | " + p.Computed.String() + " |"; !strings.Contains(doc, row) {
			t.Errorf("there is no %s", row)
		}
	}
}
