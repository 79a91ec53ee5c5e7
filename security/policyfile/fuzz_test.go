package policyfile

import (
	"errors"
	"reflect"
	"testing"

	"github.com/llmsandbox/llmsandbox/security"
)

var seeds = []string{
	"", "{}", "name: x", "extends: strict\npatterns:\n- {pattern: 'a b', severity: low, in: all, languages: [py]}\n",
	`{"restricted_modules": [{"name": "os", "severity": 3}], "computed": "HIGH"}`, "a: &a [*a]", "&a {<<: *a}", "? [x]\n: y", "- - - - 1",
	"name: !!binary aGk=\n", "name: |\n  x\n", "severity_threshold: 0x1", "severity_threshold: 1_0", "%YAML 1.1\n---\n{}\n...\n", "name: \"\\ud800\"", "\xff\xfe{\x00}\x00",
	`{"name": "\ud800"}`, `{"name": "\u0000"}`, "name: \x00",
}

// A policy that is read says the same when it is written and read again; everything else
// is an Error.
func fuzz(f *testing.F, parse func([]byte) (security.Policy, error)) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := parse(data)
		var e *Error
		if err != nil {
			if !errors.As(err, &e) || !errors.Is(err, security.ErrPolicy) || e.Error() == "" {
				t.Fatalf("got %v, want an error of type %T, security.ErrPolicy, e not empty", err, e)
			}
			return
		}
		if _, err := security.Compile(p); err != nil {
			if !errors.Is(err, security.ErrPolicy) {
				t.Fatal(err)
			}
			return
		}
		text, err := Format(p)
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParseYAML(text)
		if err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		a, errA := security.Compile(p)
		b, errB := security.Compile(again)
		if errA != nil || errB != nil || !reflect.DeepEqual(a.Policy(), b.Policy()) {
			t.Errorf("read back as another one: %s, want no error, reflect.DeepEqual(a.Policy(), b.Policy()) = true", text)
		}
	})
}

func FuzzParseYAML(f *testing.F) { fuzz(f, ParseYAML) }

func FuzzParseJSON(f *testing.F) { fuzz(f, ParseJSON) }
