package cpp

import (
	"bytes"

	"github.com/llmsandbox/llmsandbox/internal/lex"
)

const trigraphThird, trigraphMeaning = "=/'()!<>-", "#\\^[]|{}~"

// trigraph is what three characters at i mean to standards before C++17, or 0.
func trigraph(code []byte, i int) byte {
	if i+2 >= len(code) || code[i] != '?' || code[i+1] != '?' {
		return 0
	}
	if n := bytes.IndexByte([]byte(trigraphThird), code[i+2]); n >= 0 {
		return trigraphMeaning[n]
	}
	return 0
}

func trigraphs(code []byte) bool {
	for i := 0; ; i++ {
		n := bytes.Index(code[i:], []byte("??"))
		if n < 0 {
			return false
		}
		if i += n; trigraph(code, i) != 0 {
			return true
		}
	}
}

// join is the code with lines joined that end in a backslash, and white space behind it as
// compilers take it; nil when there are none.
func join(code []byte, trigraphs bool) *lex.Edited {
	if !trigraphs && !bytes.Contains(code, []byte("\\\n")) && !bytes.Contains(code, []byte("\\\r")) && !bytes.Contains(code, []byte("\\ ")) && !bytes.Contains(code, []byte("\\\t")) {
		return nil
	}
	e := &lex.Edited{Code: make([]byte, 0, len(code))}
	for i := 0; i < len(code); {
		b, n := code[i], 1
		if t := trigraph(code, i); trigraphs && t != 0 {
			b, n = t, 3
		}
		if b == '\\' {
			if end := spliced(code, i+n); end > 0 {
				i = end
				continue
			}
		}
		e.Add(string([]byte{b}), i, i+n)
		i += n
	}
	return e
}

// spliced is where the next line begins when only white space comes before it, or 0.
func spliced(code []byte, i int) int {
	for ; i < len(code); i++ {
		switch code[i] {
		case '\n':
			return i + 1
		case ' ', '\t', '\r', '\v', '\f':
		default:
			return 0
		}
	}
	return 0
}
