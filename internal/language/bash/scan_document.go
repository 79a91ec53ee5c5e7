package bash

import (
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

// A document is a here-document whose text is yet to come.
type document struct {
	end           string
	literal, tabs bool
	feed          *feed
	command       []word // that gets it
}

// documents reads those that were announced on the line that ends here.
func (s *scanner) documents() {
	for len(s.pending) > 0 {
		s.facts.Step()
		d := s.pending[0]
		s.pending = s.pending[1:]
		start := s.pos
		end, after := len(s.src), len(s.src)
		var value strings.Builder
		closed := false
		for at := s.pos; at < len(s.src); {
			s.facts.Step()
			stop := at
			for stop < len(s.src) && s.src[stop] != '\n' {
				s.facts.Step()
				stop++
			}
			line := string(s.src[at:stop])
			if d.tabs {
				line = strings.TrimLeft(line, "\t")
			}
			if strings.TrimSuffix(line, "\r") == d.end {
				end, after, closed = at, stop, true
				break
			}
			value.WriteString(line)
			value.WriteByte('\n')
			at = stop + 1
		}
		if !closed {
			s.facts.Trouble("a here-document has no end")
		}
		s.facts.String(language.Literal{Span: language.Span{Start: start, End: end}, Value: value.String()})
		if !d.literal {
			s.expansions(end)
		}
		if d.command != nil {
			s.fed = &feed{value: value.String(), constant: true, at: language.Span{Start: start, End: end}}
			s.run(d.command, false)
			s.fed = nil
		}
		s.pos = min(after+1, len(s.src))
	}
}
