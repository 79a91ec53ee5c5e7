package python

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

func TestScriptMetadata(t *testing.T) {
	for name, c := range map[string]struct {
		code string
		want *Metadata
		err  bool
	}{
		"none":       {code: "import six\n"},
		"one":        {code: "#!/usr/bin/env python3\n# /// script\n# requires-python = \">=3.11\"\n# dependencies = [\n#   \"requests >= 2, < 3\",\n#   \"rich\",\n# ]\n# ///\nimport rich\n", want: &Metadata{[]string{"requests>=2,<3", "rich"}, ">=3.11"}},
		"CRLF":       {code: "# /// script\r\n# dependencies = [\"six\"]\r\n# ///\r\n", want: &Metadata{Libraries: []string{"six"}}},
		"an empty":   {code: "# /// script\n# ///\n", want: &Metadata{}},
		"other keys": {code: "# /// script\n#\n# [tool.uv]\n# exclude-newer = \"2024\"\n# ///\n", want: &Metadata{}},
		"other kind": {code: "# /// pyproject\n# dependencies = 1\n# ///\n"},
		"not closed": {code: "# /// script\n# dependencies = [\"six\"]\nx = 1\n# ///\n"},
		"indented":   {code: "  # /// script\n  # dependencies = [\"six\"]\n  # ///\n"},
		"two":        {code: "# /// script\n# ///\n\n# /// script\n# ///\n", err: true},
		"no TOML":    {code: "# /// script\n# dependencies = \n# ///\n", err: true},
		"no list":    {code: "# /// script\n# dependencies = \"six\"\n# ///\n", err: true},
		"a marker":   {code: "# /// script\n# dependencies = [\"six; python_version < '3'\"]\n# ///\n", err: true},
		"too long":   {code: "# /// script\n# " + strings.Repeat("#", maxMetadata) + "\n# ///\n", err: true},
		"too many":   {code: "# /// script\n# dependencies = [" + strings.Repeat("\"six\",", maxRequirements+1) + "]\n# ///\n", err: true},
	} {
		got, err := ScriptMetadata(c.code)
		if !reflect.DeepEqual(got, c.want) || (err != nil) != c.err || err != nil && !errors.Is(err, errMetadata) {
			t.Errorf("%s: %+v, %v, want %+v, an error: %v", name, got, err, c.want, c.err)
		}
	}
}

func TestAccepts(t *testing.T) {
	for _, c := range []struct {
		requires string
		want     bool
	}{
		{"", true}, {">=3.11", true}, {">=3.11.8", false}, {">= 3.9, <4", true}, {"<3.11", false}, {"<=3.11.7", true}, {"<=3.11", false}, {">3.11", true}, {">3.11.7", false},
		{"==3.11.*", true}, {"==3.1.*", false}, {"==3.11", false}, {"==3.11.7", true}, {"!=3.11.*", false}, {"!=3.10.*", true}, {"~=3.10", true}, {"~=3.11.2", true}, {"~=3.10.2", false}, {"===3.11.7", true},
	} {
		if got, err := (&Metadata{Requires: c.requires}).Accepts("3.11.7"); got != c.want || err != nil {
			t.Errorf("%q: %v, %v, want %v", c.requires, got, err, c.want)
		}
	}
	for _, wrong := range []string{"3.11", ">=3.*", "~=3", ">=a", ">=3.11 <4", ">=3.99999999999999999999"} {
		if _, err := (&Metadata{Requires: wrong}).Accepts("3.11.7"); !errors.Is(err, errMetadata) {
			t.Errorf("%q: %v, want %v", wrong, err, errMetadata)
		}
	}
}

func FuzzScriptMetadata(f *testing.F) {
	f.Add("# /// script\n# requires-python = \">=3.11\"\n# dependencies = [\"six\"]\n# ///\n")
	f.Fuzz(func(t *testing.T, code string) {
		m, err := ScriptMetadata(code)
		if err != nil && m != nil {
			t.Errorf("%+v and %v, want one of them", m, err)
		}
		if m != nil {
			_, _ = m.Accepts("3.11.7") // what it requires may be anything
		}
	})
}
