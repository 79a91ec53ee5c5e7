package egress

import (
	"bytes"
	"io"
	"slices"
)

// A pair is a text and what is put in its place.
type pair struct{ from, to []byte }

// A replacer is a reader in which texts are replaced, also where they come in pieces.
// It holds bytes back only while they may be the beginning of one.
type replacer struct {
	src   io.Reader
	pairs [256][]pair // by first byte, the longest first
	hold  int         // fewer bytes than this are not held back
	in    []byte      // read and not looked at
	out   []byte      // to be given
	buf   []byte      // of out
	err   error
}

// newReplacer makes a reader of src. Pairs have a text to be replaced.
func newReplacer(src io.Reader, pairs []pair, hold int) *replacer {
	r := &replacer{src: src, hold: hold}
	for _, p := range pairs {
		if i := p.from[0]; !slices.ContainsFunc(r.pairs[i], func(q pair) bool { return bytes.Equal(q.from, p.from) }) {
			r.pairs[i] = append(r.pairs[i], p)
		}
	}
	for i := range r.pairs {
		slices.SortStableFunc(r.pairs[i], func(a, b pair) int { return len(b.from) - len(a.from) })
	}
	return r
}

func (r *replacer) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for len(r.out) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		if cap(r.in)-len(r.in) < 4<<10 {
			r.in = slices.Grow(r.in, 16<<10)
		}
		n, err := r.src.Read(r.in[len(r.in):cap(r.in)])
		r.in = r.in[:len(r.in)+n]
		r.err = err
		r.step()
	}
	n := copy(p, r.out)
	r.out = r.out[n:]
	return n, nil
}

// step moves what is decided from in to out.
func (r *replacer) step() {
	r.buf = r.buf[:0]
	i, from := 0, 0
	flush := func(to int) {
		r.buf = append(r.buf, r.in[from:to]...)
		from = to
	}
scan:
	for i < len(r.in) {
		candidates := r.pairs[r.in[i]]
		for _, p := range candidates {
			rest := r.in[i:]
			if bytes.HasPrefix(rest, p.from) {
				flush(i)
				r.buf = append(r.buf, p.to...)
				i += len(p.from)
				from = i
				continue scan
			}
			if r.err == nil && len(rest) >= r.hold && bytes.HasPrefix(p.from, rest) {
				break scan
			}
		}
		i++
	}
	flush(i)
	r.in = r.in[:copy(r.in, r.in[i:])]
	r.out = r.buf
}

// replaceAll is a replacer on one text.
func replaceAll(s string, pairs []pair) string {
	if len(pairs) == 0 || s == "" {
		return s
	}
	out, _ := io.ReadAll(newReplacer(bytes.NewReader([]byte(s)), pairs, 1)) // of memory: never fails
	return string(out)
}
