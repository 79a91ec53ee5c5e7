package podman

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// The kinds of values that parseTOML tells apart.
const (
	textTOML   = iota // a string of one line, or a word such as true
	inlineTOML        // an inline table
	otherTOML         // an array, or a string of several lines
)

// A tomlValue is one value of a TOML document with the whole way to it.
type tomlValue struct {
	key  []string
	kind int
	text string // of textTOML
	line int
}

// parseTOML reads as much of TOML as Podman's connections are written in: tables, keys,
// and values of one line. Other values are passed over, unread.
func parseTOML(text string) ([]tomlValue, error) {
	p := &tomlParser{rest: text, line: 1}
	var values []tomlValue
	var table []string
	for {
		p.blank()
		if p.rest == "" {
			return values, nil
		}
		line := p.line
		if strings.HasPrefix(p.rest, "[") {
			var err error
			if table, err = p.header(); err != nil {
				return nil, fmt.Errorf("line %d: %w", line, err)
			}
			continue
		}
		v, err := p.pair()
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		v.key, v.line = append(append([]string(nil), table...), v.key...), line
		values = append(values, v)
	}
}

type tomlParser struct {
	rest string
	line int
}

// take removes n bytes and returns them.
func (p *tomlParser) take(n int) string {
	s := p.rest[:n]
	p.line += strings.Count(s, "\n")
	p.rest = p.rest[n:]
	return s
}

// blank passes over space, line ends and comments.
func (p *tomlParser) blank() {
	for {
		p.take(len(p.rest) - len(strings.TrimLeft(p.rest, " \t\r\n")))
		if !strings.HasPrefix(p.rest, "#") {
			return
		}
		p.take(lineEnd(p.rest))
	}
}

// space passes over space within a line.
func (p *tomlParser) space() { p.rest = strings.TrimLeft(p.rest, " \t") }

// header reads [a.b] or [[a.b]].
func (p *tomlParser) header() ([]string, error) {
	closing := "]"
	p.take(1)
	if strings.HasPrefix(p.rest, "[") {
		p.take(1)
		closing = "]]"
	}
	key, err := p.dotted()
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(p.rest, closing) {
		return nil, fmt.Errorf("the table's name has to end with %s", closing)
	}
	p.take(len(closing))
	return key, p.end()
}

// pair reads key = value.
func (p *tomlParser) pair() (tomlValue, error) {
	key, err := p.dotted()
	if err != nil {
		return tomlValue{}, err
	}
	if !strings.HasPrefix(p.rest, "=") {
		return tomlValue{}, fmt.Errorf("the key %s has no value", strings.Join(key, "."))
	}
	p.take(1)
	p.space()
	v := tomlValue{key: key}
	if v.kind, v.text, err = p.value(); err != nil {
		return tomlValue{}, err
	}
	return v, p.end()
}

// dotted reads a key of one or more parts.
func (p *tomlParser) dotted() ([]string, error) {
	var key []string
	for {
		p.space()
		var part string
		var err error
		if strings.HasPrefix(p.rest, `"`) || strings.HasPrefix(p.rest, "'") {
			part, err = p.quoted()
		} else {
			part = p.take(len(p.rest) - len(strings.TrimLeft(p.rest, bareKey)))
			if part == "" {
				err = errors.New("a key is missing")
			}
		}
		if err != nil {
			return nil, err
		}
		key = append(key, part)
		p.space()
		if !strings.HasPrefix(p.rest, ".") {
			return key, nil
		}
		p.take(1)
	}
}

const bareKey = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

// value reads what comes after the equals sign.
func (p *tomlParser) value() (kind int, text string, err error) {
	switch {
	case strings.HasPrefix(p.rest, `"""`), strings.HasPrefix(p.rest, "'''"):
		return otherTOML, "", p.long()
	case strings.HasPrefix(p.rest, `"`), strings.HasPrefix(p.rest, "'"):
		text, err = p.quoted()
		return textTOML, text, err
	case strings.HasPrefix(p.rest, "{"):
		return inlineTOML, "", p.brackets()
	case strings.HasPrefix(p.rest, "["):
		return otherTOML, "", p.brackets()
	}
	n := lineEnd(p.rest)
	if i := strings.IndexByte(p.rest[:n], '#'); i >= 0 {
		n = i
	}
	if text = strings.TrimSpace(p.take(n)); text == "" {
		return 0, "", errors.New("a value is missing")
	}
	return textTOML, text, nil
}

// quoted reads a string of one line.
func (p *tomlParser) quoted() (string, error) {
	quote := p.rest[0]
	for i := 1; i < len(p.rest) && p.rest[i] != '\n'; i++ {
		switch {
		case p.rest[i] == '\\' && quote == '"':
			i++
		case p.rest[i] == quote && quote == '\'':
			return strings.Trim(p.take(i+1), "'"), nil
		case p.rest[i] == quote:
			s := p.take(i + 1)
			text, err := strconv.Unquote(s)
			if err != nil {
				return "", fmt.Errorf("the string %s is not understood", s)
			}
			return text, nil
		}
	}
	return "", errors.New("a string does not end on its line")
}

// long passes over a string of several lines.
func (p *tomlParser) long() error {
	quotes := p.take(3)
	for i := 0; i < len(p.rest); i++ {
		if p.rest[i] == '\\' && quotes == `"""` {
			i++
			continue
		}
		if strings.HasPrefix(p.rest[i:], quotes) {
			p.take(i + 3)
			for range 2 { // up to two quotes may stand before the three that end it
				if strings.HasPrefix(p.rest, quotes[:1]) {
					p.take(1)
				}
			}
			return nil
		}
	}
	return errors.New("a string does not end")
}

// brackets passes over an array or an inline table.
func (p *tomlParser) brackets() error {
	for depth := 0; ; {
		p.blank()
		if p.rest == "" {
			return errors.New("an array or a table in braces does not end")
		}
		switch p.rest[0] {
		case '[', '{':
			depth++
			p.take(1)
		case ']', '}':
			depth--
			p.take(1)
			if depth == 0 {
				return nil
			}
		case '"', '\'':
			if _, _, err := p.value(); err != nil {
				return err
			}
		default:
			p.take(1)
		}
	}
}

// end checks that nothing but a comment follows on the line.
func (p *tomlParser) end() error {
	p.space()
	p.rest = strings.TrimPrefix(p.rest, "\r")
	if p.rest == "" || p.rest[0] == '\n' || p.rest[0] == '#' {
		return nil
	}
	return fmt.Errorf("%.20q follows on the line", p.rest[:lineEnd(p.rest)])
}

func lineEnd(s string) int {
	if i := strings.IndexByte(s, '\n'); i >= 0 {
		return i
	}
	return len(s)
}
