package egress

import (
	"bytes"
	"encoding/base64"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// maxWholeBody is the largest request body that is kept in memory so that its length
// can be announced when secrets change it.
const maxWholeBody = 1 << 20

// substitute puts the secrets of the request's host in the place of their
// placeholders. It returns what to look for in the response.
func (v *vault) substitute(a *attempt, out *http.Request, host target, port uint16) ([]pair, error) {
	if v == nil {
		return nil, nil
	}
	mine := v.at(host, port)
	v.noteOthers(a, out, mine)
	if len(mine) == 0 {
		return nil, nil
	}
	var in, echoes []pair
	for _, e := range mine {
		in = append(in, pair{[]byte(e.placeholder), []byte(e.Value)})
		echoes = append(echoes, e.echoes()...)
	}
	for name, values := range out.Header {
		for i, value := range values {
			values[i] = replaceAll(value, in)
			if basic, token, ok := replaceBasic(value, in); ok {
				values[i] = basic
				_, was, _ := strings.Cut(value, " ")
				echoes = append(echoes, fitted(token, strings.TrimSpace(was)))
			}
		}
		out.Header[name] = values
	}
	var inQuery []pair
	for _, e := range mine {
		inQuery = append(inQuery, pair{[]byte(e.placeholder), []byte(url.QueryEscape(e.Value))})
	}
	out.URL.RawQuery = replaceAll(out.URL.RawQuery, inQuery)
	// What comes back must be readable.
	out.Header.Set("Accept-Encoding", "identity")
	out.Header.Del("Sec-Websocket-Extensions")
	return echoes, substituteBody(out, mine)
}

// noteOthers notes placeholders of secrets that are not for this host. They stay what
// they are.
func (v *vault) noteOthers(a *attempt, out *http.Request, mine []*entry) {
entries:
	for _, e := range v.entries {
		for _, m := range mine {
			if m == e {
				continue entries
			}
		}
		found := strings.Contains(out.URL.RequestURI(), e.placeholder)
		for _, values := range out.Header {
			for _, value := range values {
				decoded, _ := decodeBasic(value)
				found = found || strings.Contains(value, e.placeholder) || strings.Contains(decoded, e.placeholder)
			}
		}
		if found {
			a.note("the request held the placeholder of the secret " + e.Name + ", which is not for this host: it was sent as it is")
		}
	}
}

// decodeBasic returns user:password of a value of the Authorization header.
func decodeBasic(value string) (string, bool) {
	scheme, token, ok := strings.Cut(value, " ")
	if !ok || !strings.EqualFold(scheme, "Basic") {
		return "", false
	}
	plain, err := base64.StdEncoding.DecodeString(strings.TrimSpace(token))
	return string(plain), err == nil
}

// replaceBasic replaces within the base64 of basic authentication.
func replaceBasic(value string, in []pair) (basic, token string, ok bool) {
	plain, ok := decodeBasic(value)
	if !ok {
		return "", "", false
	}
	changed := replaceAll(plain, in)
	if changed == plain {
		return "", "", false
	}
	token = base64.StdEncoding.EncodeToString([]byte(changed))
	return "Basic " + token, token, true
}

// substituteBody replaces in the body for the secrets that ask for it, written as the
// body's type wants it.
func substituteBody(out *http.Request, mine []*entry) error {
	if out.Body == nil || out.Body == http.NoBody || out.Header.Get("Content-Encoding") != "" {
		return nil
	}
	write := func(s string) string { return s }
	kind, _, _ := mime.ParseMediaType(out.Header.Get("Content-Type")) // unknown is as it is
	switch {
	case kind == "application/x-www-form-urlencoded":
		write = url.QueryEscape
	case kind == "application/json" || strings.HasSuffix(kind, "+json"):
		write = inJSON
	}
	var pairs []pair
	same := true
	for _, e := range mine {
		if e.Body {
			to := write(e.Value)
			same = same && len(to) == len(e.placeholder)
			pairs = append(pairs, pair{[]byte(e.placeholder), []byte(to)})
		}
	}
	if len(pairs) == 0 {
		return nil
	}
	body := out.Body
	replaced := newReplacer(body, pairs, 1)
	switch {
	case same:
	case out.ContentLength > maxWholeBody || out.ContentLength < 0:
		out.ContentLength = -1
		out.Header.Del("Content-Length")
	default:
		whole, err := io.ReadAll(replaced)
		if err != nil {
			return &failure{what: "the request's body broke off", err: err}
		}
		out.Body = struct {
			io.Reader
			io.Closer
		}{bytes.NewReader(whole), body}
		out.ContentLength = int64(len(whole))
		out.Header.Set("Content-Length", strconv.Itoa(len(whole)))
		return nil
	}
	out.Body = struct {
		io.Reader
		io.Closer
	}{replaced, body}
	return nil
}
