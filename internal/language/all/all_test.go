package all

import (
	"errors"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

func TestGet(t *testing.T) {
	for name, want := range map[string]string{"PY": "python", "node": "javascript", "C++": "cpp", "golang": "go", " rb ": "ruby", "sh": "bash", "R": "r"} {
		if l, err := Get(name); err != nil || l.Name != want {
			t.Errorf("Get(%q) = %v, %v, want no error, Name = %v", name, l, err, want)
		}
	}
	var unknown *language.UnknownError
	if _, err := Get("pyhton"); !errors.As(err, &unknown) || unknown.Closest != "python" || !errors.Is(err, language.ErrUnknown) || len(unknown.Known) != 8 {
		t.Errorf("got %v, want an error of type %T, Closest = \"python\", language.ErrUnknown, len(unknown.Known) = 8", err, unknown)
	}
	if _, err := Get("cobol"); !errors.As(err, &unknown) || unknown.Closest != "" {
		t.Errorf("got %v, want an error of type %T, Closest empty", err, unknown)
	}
}

func TestGuess(t *testing.T) {
	for _, c := range []struct{ name, head, want string }{
		{"a.py", "", "python"}, {"A.PY", "", "python"}, {"x.C", "", "cpp"}, {"x.mjs", "", "javascript"}, {`c:\a.rb`, "", "ruby"},
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

func FuzzGuess(f *testing.F) {
	f.Add("a.py", []byte("#!/usr/bin/env -S python3 -u\n"))
	f.Add("", []byte("#!"))
	f.Fuzz(func(t *testing.T, name string, head []byte) {
		if l, ok := Guess(name, head); ok != (l != nil) {
			t.Errorf("%v %v, want %v", l, ok, l != nil)
		}
	})
}
