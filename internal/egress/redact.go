package egress

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"html"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/plainjson"
)

// echoes are the writings in which a host that hands back what it was sent may hand
// back the value, and what takes their place: the same writing of the placeholder, of
// the same length, so that lengths that were announced stay true.
func (e *entry) echoes() []pair {
	var out []pair
	add := func(from, to string) {
		if len(from) >= MinSecret {
			out = append(out, fitted(from, to))
		}
	}
	for _, write := range writings {
		add(write(e.Value), write(e.placeholder))
	}
	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for shift := range 3 {
			add(core(encoding, e.Value, shift), core(encoding, e.placeholder, shift))
		}
	}
	return out
}

// writings of a text, the first being the text itself.
var writings = []func(string) string{
	func(s string) string { return s },
	plainjson.Inside,
	func(s string) string { // as encoders that care for HTML write it
		b, _ := json.Marshal(s) // a string always can be
		return string(b[1 : len(b)-1])
	},
	url.QueryEscape,
	url.PathEscape,
	html.EscapeString,
	func(s string) string { return hex.EncodeToString([]byte(s)) },
	func(s string) string { return strings.ToUpper(hex.EncodeToString([]byte(s))) },
}

// core is the part of the base64 of any text with s in it, shift bytes into a group,
// that depends on s alone.
func core(encoding *base64.Encoding, s string, shift int) string {
	whole := encoding.EncodeToString([]byte(strings.Repeat("\x00", shift) + s))
	first := (shift*8 + 5) / 6
	last := (shift + len(s)) * 8 / 6
	return whole[first:last]
}

// fitted is a pair of equal lengths.
func fitted(from, to string) pair {
	if len(to) < len(from) {
		to += strings.Repeat("*", len(from)-len(to))
	}
	return pair{[]byte(from), []byte(to[:len(from)])}
}

// redact puts placeholders where the response has values. It fails when the response
// is in an encoding in which they could not be seen.
func redact(r *http.Response, pairs []pair) error {
	redactHeader(r.Header, pairs)
	if r.StatusCode == http.StatusSwitchingProtocols {
		if both, ok := r.Body.(io.ReadWriteCloser); ok {
			// A message's last bytes must not wait for the next message.
			r.Body = &upgraded{newReplacer(both, pairs, 4), both}
		}
		return nil
	}
	var body io.Reader = r.Body
	switch encoding := strings.ToLower(strings.TrimSpace(r.Header.Get("Content-Encoding"))); {
	case len(r.Header.Values("Content-Encoding")) > 1:
		return unreadable("several")
	case encoding == "" || encoding == "identity":
	case r.ContentLength == 0 || r.Request.Method == http.MethodHead:
	case encoding == "gzip" || encoding == "x-gzip":
		r.Header.Del("Content-Encoding")
		r.Header.Del("Content-Length")
		r.ContentLength = -1
		body = &lazyGzip{src: r.Body}
	default:
		return unreadable(quoted(clip(encoding)))
	}
	r.Body = &redacted{newReplacer(body, pairs, 1), r, pairs}
	return nil
}

func unreadable(what string) error {
	return &Refusal{Code: RefusedUnreadable, what: "the host of a secret answered in an encoding (" + what + ") in which the secret could not be recognised, though none was asked for"}
}

func redactHeader(h http.Header, pairs []pair) {
	for name, values := range h {
		for i, v := range values {
			values[i] = replaceAll(v, pairs)
		}
		if clean := replaceAll(name, pairs); clean != name {
			delete(h, name)
			h[http.CanonicalHeaderKey(clean)] = values
		}
	}
}

// redacted is a body without values. At its end the trailers, which are known then,
// are redacted too.
type redacted struct {
	*replacer
	r     *http.Response
	pairs []pair
}

func (b *redacted) Read(p []byte) (int, error) {
	n, err := b.replacer.Read(p)
	if err == io.EOF {
		redactHeader(b.r.Trailer, b.pairs)
	}
	return n, err
}

// Close closes what the host sends.
func (b *redacted) Close() error {
	if g, ok := b.src.(*lazyGzip); ok {
		return g.src.Close()
	}
	return b.src.(io.Closer).Close()
}

// upgraded is a connection whose reading half is redacted.
type upgraded struct {
	io.Reader
	io.WriteCloser
}

// lazyGzip unpacks, reading nothing before it is read.
type lazyGzip struct {
	src io.ReadCloser
	r   *gzip.Reader
	err error
}

func (g *lazyGzip) Read(p []byte) (int, error) {
	if g.r == nil && g.err == nil {
		g.r, g.err = gzip.NewReader(g.src)
	}
	if g.err != nil {
		return 0, g.err
	}
	return g.r.Read(p)
}

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
