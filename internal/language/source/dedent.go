package source

import "bytes"

// Dedent removes the white space that all lines which are not blank begin with, so
// that a snippet cut out of a document runs. Other code is returned as it is.
func Dedent(code []byte) []byte {
	lines := bytes.Split(code, []byte("\n"))
	var indent []byte
	for i, seen := 0, false; i < len(lines); i++ {
		rest := bytes.TrimLeft(lines[i], " \t")
		if len(bytes.TrimSpace(rest)) == 0 {
			continue
		}
		own := lines[i][:len(lines[i])-len(rest)]
		if !seen {
			indent, seen = own, true
		}
		indent = indent[:common(indent, own)]
		if len(indent) == 0 {
			return code
		}
	}
	if len(indent) == 0 {
		return code
	}
	for i, line := range lines {
		lines[i] = line[common(line, indent):]
	}
	return bytes.Join(lines, []byte("\n"))
}

// common is the length of the longest common prefix.
func common(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}
