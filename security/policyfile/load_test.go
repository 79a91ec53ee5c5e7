package policyfile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/security"
)

// The errors are what people see of a file that is wrong.
func TestWhatIsWrongIsNamedWithItsLine(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"a.yaml", "", "a.yaml: it is empty"},
		{"a.yaml", "name: [", "a.yaml:1: did not find expected node content"},
		{"a.yaml", "just text", "a.yaml:1: a policy is text and should be a mapping"},
		{"a.yaml", "name: x\nrestricted_modules:\n- name: os\n  severty: HIGH\n", `a.yaml:4: a restricted module has no "severty": did you mean severity?`},
		{"a.yaml", "rules: []\n", `a.yaml:1: a policy has no "rules": there are computed, description, `},
		{"a.yaml", "name: x\nname: y\n", `a.yaml:2: a policy has "name" twice`},
		{"a.yaml", "name: x\n---\nname: y\n", "a.yaml:2: there is a second document"},
		{"a.yaml", "patterns:\n- pattern: x\n", `a.yaml:2: a pattern needs a "severity"`},
		{"a.yaml", "patterns:\n- severity: LOW\n", `a.yaml:2: a pattern needs a "pattern"`},
		{"a.yaml", "severity_threshold: HUGE\n", `a.yaml:1: policy is not valid: severity "HUGE": use SAFE`},
		{"a.yaml", "severity_threshold: 1.5\n", "a.yaml:1: a severity is a number and should be"},
		{"a.yaml", "restricted_modules:\n- name: 5\n  severity: LOW\n", "a.yaml:2: a restricted module's name is a number and should be text: put it in quotes"},
		{"a.yaml", "restricted_modules:\n- name: x\n  severity: LOW\n  languages: python\n", "a.yaml:4: languages is text and should be a list"},
		{"a.yaml", "restricted_modules: &a\n- name: x\n  severity: LOW\nrestricted_names: *a\n", "a.yaml:4: restricted_names is an alias, which policies do not have,"},
		{"a.yaml", "<<: {name: x}\n", `a.yaml:1: a policy has no "<<"`},
		{"a.yaml", "extends: nobody\n", `a.yaml:1: extends: policy is not valid: there is no policy "nobody"`},
		{"a.yml", "extends: [a]\n", "a.yml:1: extends is a list"},
		{"a.json", "", "a.json:1: it ends too early"},
		{"a.json", "{\n\"name\": \"x\",\n\"name\": \"y\"}", `a.json:3: a policy has "name" twice`},
		{"a.json", "{\n\"patterns\": [{\"pattern\": \"a\",\n\"severity\": \"LOW\", \"where\": 1}]}", `a.json:3: a pattern has no "where"`},
		{"a.json", `{"name": "x"} {}`, "a.json:1: there is more behind the policy"},
		{"a.json", `{"name": `, "a.json:1: it ends too early"},
		{"a.json", `{"name": nul}`, "a.json:1: invalid character"},
		{"a.json", strings.Repeat("[", 50), "a.json:1: values lie too deep in each other"},
		{"a.json", `{"name": null}`, "a.json:1: the policy's name is empty and should be text"},
		{"a.json", `{"name": true}`, "a.json:1: the policy's name is a truth value and should be text"},
		{"a.json", strings.Repeat(" ", MaxSize+1), "a.json: it is larger than 1024 KiB"},
	} {
		path := filepath.Join(t.TempDir(), c.name)
		if err := os.WriteFile(path, []byte(c.text), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := Load(path)
		if err == nil || !strings.Contains(err.Error(), c.want) || !errors.Is(err, security.ErrPolicy) {
			t.Errorf("%.60q: got %v, want %s", c.text, err, c.want)
		}
	}
}

func TestLoadNamesWhatThereIs(t *testing.T) {
	if c, err := Load("production"); err != nil || c.Policy().Name != "production" {
		t.Errorf("got %v, %v, want no error, Name = \"production\"", c, err)
	}
	if _, err := Load("prodction"); !errors.Is(err, security.ErrPolicy) || !strings.Contains(err.Error(), "web_scraping") || !strings.Contains(err.Error(), ".yaml") {
		t.Errorf("got %v, want security.ErrPolicy, an error containing \"web_scraping\", an error containing \".yaml\"", err)
	}
	if _, err := Load("none.yaml"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want os.ErrNotExist", err)
	}
}

// TestJSONIsNoYAML has escapes that JSON's writers use and YAML does not know.
func TestJSONIsNoYAML(t *testing.T) {
	got, err := ParseJSON([]byte(`{"name": "a\/b", "description": "\ud83d\ude00"}`))
	if err != nil || got.Name != "a/b" || got.Description != "😀" {
		t.Errorf("%+v, %v, want a/b, 😀 and no error", got, err)
	}
}
