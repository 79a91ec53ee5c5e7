package security

import (
	"fmt"
	"strings"
)

// A Severity is how bad a finding is. Its text, in JSON and YAML too, is its name in
// capitals.
type Severity int

// The severities, in their order.
const (
	Safe Severity = iota
	Low
	Medium
	High
)

var severities = [...]string{Safe: "SAFE", Low: "LOW", Medium: "MEDIUM", High: "HIGH"}

func (s Severity) valid() bool { return s >= Safe && int(s) < len(severities) }

// String is the severity's name in capitals.
func (s Severity) String() string {
	if !s.valid() {
		return fmt.Sprintf("Severity(%d)", int(s))
	}
	return severities[s]
}

// ParseSeverity reads a severity's name in any case, or its number from 0, safe, to 3,
// high. Its error wraps ErrPolicy.
func ParseSeverity(text string) (Severity, error) {
	want := strings.TrimSpace(text)
	for s, name := range severities {
		if strings.EqualFold(want, name) || want == string(rune('0'+s)) {
			return Severity(s), nil
		}
	}
	return Safe, fmt.Errorf("%w: severity %.40q: use SAFE, LOW, MEDIUM or HIGH", ErrPolicy, text)
}

// MarshalText writes the name.
func (s Severity) MarshalText() ([]byte, error) {
	if !s.valid() {
		return nil, fmt.Errorf("%w: there is no %v", ErrPolicy, s)
	}
	return []byte(s.String()), nil
}

// UnmarshalText is ParseSeverity.
func (s *Severity) UnmarshalText(text []byte) (err error) {
	*s, err = ParseSeverity(string(text))
	return err
}

// UnmarshalJSON reads a name or a number.
func (s *Severity) UnmarshalJSON(data []byte) error {
	text := string(data)
	if text == "null" {
		return nil
	}
	if len(text) >= 2 && text[0] == '"' {
		text = text[1 : len(text)-1]
	}
	return s.UnmarshalText([]byte(text))
}
