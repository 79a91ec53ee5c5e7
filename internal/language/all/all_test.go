package all

import (
	"errors"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

func TestGet(t *testing.T) {
	for name, want := range map[string]string{"PY": "python", "node": "javascript", "C++": "cpp", "C#": "csharp", "sqlite": "sql", "golang": "go", " rb ": "ruby", "sh": "bash", "R": "r"} {
		if l, err := Get(name); err != nil || l.Name != want {
			t.Errorf("Get(%q) = %v, %v, want no error, Name = %v", name, l, err, want)
		}
	}
	var unknown *language.UnknownError
	if _, err := Get("pyhton"); !errors.As(err, &unknown) || unknown.Closest != "python" || !errors.Is(err, language.ErrUnknown) || len(unknown.Known) != 18 {
		t.Errorf("got %v, want an error of type %T, Closest = \"python\", language.ErrUnknown, len(unknown.Known) = 18", err, unknown)
	}
	if _, err := Get("cobol"); !errors.As(err, &unknown) || unknown.Closest != "" {
		t.Errorf("got %v, want an error of type %T, Closest empty", err, unknown)
	}
}

func TestGuess(t *testing.T) {
	for _, c := range []struct{ name, head, want string }{
		{"a.py", "", "python"}, {"A.PY", "", "python"}, {"x.C", "", "cpp"}, {"x.c", "", "c"}, {"x.tsx", "", "typescript"}, {"x.mjs", "", "javascript"}, {`c:\a.rb`, "", "ruby"},
		{"a", "#!/usr/bin/env -S python3 -u\n", "python"}, {"a", "#! /usr/bin/python3.11", "python"}, {"a", "#!/bin/sh -e\n", "bash"},
		{"a", "#!/usr/bin/env A=b node", "javascript"}, {"a", "\xef\xbb\xbf#!/usr/bin/Rscript\r\n", "r"},
		{"a", "#!/usr/bin/env", ""}, {"a.txt", "python", ""}, {"", "", ""}, {"a", "#!", ""},
	} {
		l, ok := Guess(c.name, []byte(c.head))
		if ok != (c.want != "") || ok && l.Name != c.want {
			t.Errorf("Guess(%q, %q) = %v, %v, want ok = %v, ok = false or Name = %v", c.name, c.head, l, ok, c.want != "", c.want)
		}
	}
}

func TestChoose(t *testing.T) {
	for _, c := range []struct{ name, head, want, reason string }{
		{"a.py", "#!/usr/bin/env node\n", "python", ""},
		{"a.sh", "", "bash", ""}, {"a.sh", "#!/bin/sh -e\n", "bash", ""}, {"a.SH", "#!/usr/bin/env bash\n", "bash", ""},
		{"a.sh", "#!/usr/bin/env python3\n", "python", ""},
		{"a.sh", "#!/bin/zsh\n", "", `cannot run a.sh: its first line asks for "zsh"`},
		{"a.bash", "#!/usr/bin/env -S fish -N\n", "", `asks for "fish"`},
		{"a", "#!/bin/ksh", "", `asks for "ksh"`}, {"a", "#!/usr/bin/perl -w\n", "perl", ""}, {"a.pl", "#!/usr/bin/tclsh\n", "perl", ""},
		{"a", "#!/usr/bin/awk -f\n", "", `asks for "awk"`}, {"a", "#!/usr/bin/Rscript", "r", ""}, {"a", "#!/usr/bin/ruby3.1", "ruby", ""},
		{"a.rs", "", "rust", ""}, {"a", "#!/usr/bin/lua5.4", "lua", ""},
		{"a.tcl", "", "", "cannot run a.tcl: its name does not say which language it is in: use one of the endings .py"},
		{"/etc/passwd", "root:x:0:0", "", "cannot run /etc/passwd"}, {"words.txt", "one", "", "or choose the language with --lang"},
		{"", "print(1)", "", ""}, {"", "#!/usr/bin/env ruby", "ruby", ""}, {"", "#!/bin/csh", "", `cannot run this code: its first line asks for "csh"`},
	} {
		l, err := Choose(c.name, []byte(c.head))
		if (l == nil) != (c.want == "") || l != nil && l.Name != c.want || (err == nil) != (c.reason == "") ||
			err != nil && !strings.Contains(err.Error(), c.reason) {
			t.Errorf("Choose(%q, %q) = %v, %v, want language %q, error with %q", c.name, c.head, l, err, c.want, c.reason)
		}
	}
}

func FuzzGuess(f *testing.F) {
	f.Add("a.py", []byte("#!/usr/bin/env -S python3 -u\n"))
	f.Add("", []byte("#!"))
	f.Fuzz(func(t *testing.T, name string, head []byte) {
		if l, ok := Guess(name, head); ok != (l != nil) {
			t.Errorf("%v %v, want %v", l, ok, l != nil)
		}
	})
}
