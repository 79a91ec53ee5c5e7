package security

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/termsafe"
)

// maxFindings is how many findings a report has.
const maxFindings = 1000

// A Report is what a check has found.
type Report struct {
	// Policy is the policy's name, and Threshold its threshold.
	Policy    string   `json:"policy,omitempty"`
	Threshold Severity `json:"severity_threshold"`
	// Blocked reports whether the policy refuses the code.
	Blocked bool `json:"blocked"`
	// Findings are what was found, in the order of the code, of the same place the worst
	// first. The first one that refuses the code is always among them.
	Findings []Finding `json:"findings"`
	// Omitted is how many more there were: a report has up to 1000.
	Omitted int `json:"omitted,omitempty"`
}

// A Finding is one place in code, or one library, that a policy names.
type Finding struct {
	// Rule is what names it: "module:os", "name:os.system", "pattern:...",
	// "computed:import", "library:requests"; or "unreadable" for code that could not be
	// looked at, or not to its end.
	Rule     string   `json:"rule"`
	Severity Severity `json:"severity"`
	// File is the file's name where several were checked, or empty.
	File string `json:"file,omitempty"`
	// Language is what the code is written in.
	Language string `json:"language"`
	// Line and Column, from 1, tell where it begins, EndLine and EndColumn the place behind
	// it; columns count characters. They are 0 for a library.
	Line      int `json:"line,omitempty"`
	Column    int `json:"column,omitempty"`
	EndLine   int `json:"end_line,omitempty"`
	EndColumn int `json:"end_column,omitempty"`
	// Code is the text that was found, up to 120 characters on one line, without control
	// sequences.
	Code string `json:"code"`
	// Reason is a sentence on what it is and why the policy names it.
	Reason string `json:"reason"`
}

// report judges findings, which are in order.
func (c *Checker) report(findings []Finding) Report {
	r := Report{Policy: c.policy.Name, Threshold: c.policy.Threshold, Findings: []Finding{}}
	for _, f := range findings {
		decides := !r.Blocked && r.refuses(f)
		r.Blocked = r.Blocked || decides
		if len(r.Findings) < maxFindings || decides {
			r.Findings = append(r.Findings, f)
		} else {
			r.Omitted++
		}
	}
	return r
}

func (r Report) refuses(f Finding) bool { return r.Threshold > Safe && f.Severity >= r.Threshold }

// Violations are the first finding that refuses the code and the lower ones before it; all
// findings where none does.
func (r Report) Violations() []Finding {
	for i, f := range r.Findings {
		if r.refuses(f) {
			return r.Findings[:i+1]
		}
	}
	return r.Findings
}

// maxCodeText is how many characters of code a finding shows.
const maxCodeText = 120

// findings collects what is found in one code.
type findings struct {
	lang  string
	code  []byte
	found []located
}

type located struct {
	language.Span
	Finding
}

func (f *findings) add(s language.Span, rule string, severity Severity, reason string) {
	s.Start = min(max(s.Start, 0), len(f.code))
	s.End = min(max(s.End, s.Start), len(f.code))
	f.found = append(f.found, located{s, Finding{Rule: rule, Severity: severity, Language: f.lang, Reason: reason}})
}

// sorted are the findings in the order of the code, each once, with their places.
func (f *findings) sorted() []Finding {
	slices.SortStableFunc(f.found, func(a, b located) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(b.Severity, a.Severity), cmp.Compare(a.End, b.End), strings.Compare(a.Rule, b.Rule))
	})
	f.found = slices.CompactFunc(f.found, func(a, b located) bool { return a.Span == b.Span && a.Rule == b.Rule })
	places := f.places()
	all := make([]Finding, 0, len(f.found))
	for _, l := range f.found {
		start, end := places[l.Start], places[l.End]
		l.Line, l.Column, l.EndLine, l.EndColumn = start.line, start.column, end.line, end.column
		l.Code = clipped(f.code[l.Start:l.End])
		all = append(all, l.Finding)
	}
	return all
}

type place struct{ line, column int }

// places are the lines and columns of where findings begin and end, found in one pass.
func (f *findings) places() map[int]place {
	var offsets []int
	for _, l := range f.found {
		offsets = append(offsets, l.Start, l.End)
	}
	slices.Sort(offsets)
	places := make(map[int]place, len(offsets))
	at, here := 0, place{1, 1}
	if bytes.HasPrefix(f.code, []byte("\xef\xbb\xbf")) {
		here.column = 0 // a byte order mark is no character of the text
	}
	for _, offset := range offsets {
		part := f.code[at:offset]
		if i := bytes.LastIndexByte(part, '\n'); i >= 0 {
			here = place{here.line + bytes.Count(part, []byte("\n")), 1}
			part = part[i+1:]
		}
		here.column += utf8.RuneCount(part)
		places[offset] = place{here.line, max(here.column, 1)}
		at = offset
	}
	return places
}

// clipped is code as it is shown: on one line, harmless, and short.
func clipped(code []byte) string {
	short := code[:min(len(code), 8*maxCodeText)]
	text := []rune(strings.Join(strings.Fields(strings.ReplaceAll(termsafe.String(strings.ToValidUTF8(string(short), "\uFFFD")), "\b", "")), " "))
	if len(text) > maxCodeText || len(short) < len(code) {
		return string(text[:min(len(text), maxCodeText-1)]) + "…"
	}
	return string(text)
}
