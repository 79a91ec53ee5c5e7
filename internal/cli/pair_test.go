package cli

import "testing"

func TestSplitPair(t *testing.T) {
	for spec, want := range map[string][2]string{
		"data.csv":       {"data.csv", ""},
		"data.csv:in/d":  {"data.csv", "in/d"},
		"data.csv:":      {"data.csv", ""},
		"a:b:":           {"a:b", ""},
		"a:b:c":          {"a:b", "c"},
		"a..b.txt:-rf":   {"a..b.txt", "-rf"},
		" :new\nline":    {" ", "new\nline"},
		":odd":           {":odd", ""},
		"":               {"", ""},
		"./out/:/sand/x": {"./out/", "/sand/x"},
	} {
		if from, to := splitPair(spec); from != want[0] || to != want[1] {
			t.Errorf("%q: %q and %q, want %q", spec, from, to, want)
		}
	}
}
