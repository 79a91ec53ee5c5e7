package mcp

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/llmsandbox/llmsandbox/internal/termsafe"
)

// clean makes text from a sandbox fit for a model and for a person who reads over its
// shoulder: valid UTF-8, and no control sequences or characters that hide or forge. A
// carriage return, which on a terminal hides what stands before it, becomes a new line.
func clean(s string) string {
	return lines.Replace(termsafe.String(s))
}

// lines turns every end of a line into a new line.
var lines = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\b", "")

// shorten bounds text at about most bytes: its beginning and its end are kept, and a line
// between them says how much is not. cut is the number of bytes left out.
func shorten(s string, most int) (short string, cut int) {
	if len(s) <= most {
		return s, 0
	}
	head := most / 2
	for head > 0 && !utf8.RuneStart(s[head]) {
		head--
	}
	tail := len(s) - (most - most/2)
	for tail < len(s) && !utf8.RuneStart(s[tail]) {
		tail++
	}
	cut = tail - head
	return fmt.Sprintf("%s\n[... %s left out ...]\n%s", s[:head], count(cut, "byte"), s[tail:]), cut
}

// line is clean text in one short line, for names and messages.
func line(s string) string {
	const most = 1000
	s, _ = shorten(clean(s), most)
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' }), " ")
}

// count writes a number of things, such as "1 byte" or "0.5 CPUs".
func count[N int | float64](n N, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%v %ss", n, thing)
}

// span writes a time as people do: in minutes or seconds where it is a whole number of them.
func span(d time.Duration) string {
	switch {
	case d >= time.Minute && d%time.Minute == 0:
		return count(int(d/time.Minute), "minute")
	case d >= time.Second && d%time.Second == 0:
		return count(int(d/time.Second), "second")
	}
	return d.String()
}
