package language

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

func TestRenamer(t *testing.T) {
	single := Plan{Files: []File{{Path: "/sandbox/.run-7a.py"}}}
	project := Plan{Files: []File{{Path: "/sandbox/.run-7a/app.go"}}}
	for _, c := range []struct {
		name, given string
		plan        Plan
		text, want  string
	}{
		{"unnamed", "", single, `File "/sandbox/.run-7a.py", line 1`, `File "/sandbox/main.py", line 1`},
		{"named", "job.py", single, `File "/sandbox/.run-7a.py", line 1`, `File "/sandbox/job.py", line 1`},
		{"another ending", "job.txt", single, "usage: .run-7a.py [-h]", "usage: job.txt [-h]"},
		{"a name with a folder", "../job.py", single, ".run-7a.py", "main.py"},
		{"twice", "", single, ".run-7a.py.run-7a.py", "main.pymain.py"},
		{"the ending's beginning", "", single, ".run-7a.p", "main.p"},
		{"at the end", "", single, "/tmp/.run-7a", "/tmp/main"},
		{"another run", "", single, ".run-7b.py .run-", ".run-7b.py .run-"},
		{"project", "app.go", project, "./app.go /sandbox/.run-7a/app.go:3 /tmp/.run-7a: x", "./app.go /sandbox/app.go:3 /tmp/app: x"},
		{"nothing of it", "", single, "...", "..."},
	} {
		t.Run(c.name, func(t *testing.T) {
			src := Source{Name: c.given, RunID: "7a"}
			for first := range len(c.text) + 1 {
				if first > 0 && first < len(c.text) && c.text[first-1:first+1] == ".r" {
					continue // as the Renamer's comment says
				}
				var got bytes.Buffer
				r := NewRenamer(&got, src, c.plan)
				for _, part := range []string{c.text[:first], c.text[first:]} {
					if n, err := r.Write([]byte(part)); n != len(part) || err != nil {
						t.Errorf("Write(%q) = %d, %v, want n = %d, no error", part, n, err, len(part))
					}
				}
				if err := r.Flush(); err != nil || got.String() != c.want {
					t.Errorf("%q then %q: got %q, %v; want %q", c.text[:first], c.text[first:], got.String(), err, c.want)
				}
			}
		})
	}
}

// What has none of the run's names is written as it comes, at once, but for what may be the
// beginning of one.
func TestRenamerChangesNothingElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var got, want bytes.Buffer
		r := NewRenamer(&got, Source{RunID: "7a"}, Plan{})
		for _, part := range rapid.SliceOf(rapid.SliceOf(rapid.SampledFrom([]byte(".run-7x")))).Draw(t, "parts") {
			want.Write(part)
			if bytes.Contains(want.Bytes(), []byte(".run-7a")) {
				t.Skip()
			}
			if _, err := r.Write(part); err != nil {
				t.Fatal(err)
			}
			if held := want.Len() - got.Len(); held > len(".run-7") || held == 1 {
				t.Fatalf("%d bytes are held back of %q, want held <= %d, held != 1", held, want.Bytes(), len(".run-7"))
			}
		}
		if err := r.Flush(); err != nil || !bytes.Equal(got.Bytes(), want.Bytes()) {
			t.Fatalf("got %q, %v; want %q", got.Bytes(), err, want.Bytes())
		}
	})
}
