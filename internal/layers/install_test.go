package layers

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/backend"
)

func TestToolOutput(t *testing.T) {
	var many []string
	for i := range 100 {
		many = append(many, fmt.Sprintf("line %d\n", i))
	}
	for name, c := range map[string]struct {
		writes []string
		want   string
	}{
		"lines":             {[]string{"a\nb\n"}, "a\nb"},
		"pieces":            {[]string{"a", "b\n", "c"}, "ab\nc"},
		"blank lines":       {[]string{"a\n\n \t\r\nb\n"}, "a\nb"},
		"a progress bar":    {[]string{"10%\r50%\r100%\ndone\r\n"}, "100%\ndone"},
		"control sequences": {[]string{"\x1b[31mred\x1b[0m\x1b]0;title\x07\x00\n"}, "red"},
		"no text":           {[]string{"\xff\xfe a\n"}, "\uFFFD\uFFFD a"},
		"a long line":       {[]string{strings.Repeat("x", 10_000), "\nend\n"}, strings.Repeat("x", maxToolLine) + "\nend"},
		"many lines":        {many, strings.TrimSpace(strings.Join(many[100-maxToolLines:], ""))},
		"nothing":           {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var told []string
			w := newToolOutput(func(p backend.Progress) { told = append(told, p.Output) }, backend.Progress{Stage: "install"})
			for _, p := range c.writes {
				if n, err := w.Write([]byte(p)); n != len(p) || err != nil {
					t.Fatalf("n = %v, err = %v, want n = %v, no error", n, err, len(p))
				}
			}
			if got := w.last(); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
			if kept := strings.Split(c.want, "\n"); c.want != "" && !slices.Equal(told[len(told)-len(kept):], kept) {
				t.Errorf("told %q, want want empty or %v", told, kept)
			}
		})
	}
}
