package egress

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/plainjson"
)

// A Secret is a value that the code never sees: it knows a placeholder, and requests
// to Hosts have the value put in its place on their way out.
type Secret struct {
	Name  string // of the environment variable that holds the placeholder
	Value string // at least [MinSecret] bytes, no control characters
	// Hosts are HOST[:PORT] or *.DOMAIN[:PORT], at least one; without a port any.
	Hosts []string
	// Body lets it be put into request bodies too. A host that stores what it is sent
	// may show it to others, so that this is for hosts that want it there.
	Body bool
}

// MinSecret is the least length of a secret's value: shorter ones could not be distinguished
// from other text in an answer.
const MinSecret = 8

// A vault holds the secrets of one sandbox and what stands for them.
type vault struct {
	entries   []*entry
	authority *authority
}

// An entry is one secret.
type entry struct {
	Secret
	placeholder string
	hosts       []rule
}

// maxSecrets bounds how many secrets a sandbox may have.
const maxSecrets = 100

// newVault checks the secrets and makes their placeholders; it is nil without any.
func newVault(secrets []Secret) (*vault, error) {
	if len(secrets) == 0 {
		return nil, nil
	}
	if len(secrets) > maxSecrets {
		return nil, fmt.Errorf("%d secrets: %w: at most %d", len(secrets), ErrInvalid, maxSecrets)
	}
	v := &vault{}
	seen := map[string]bool{}
	for _, s := range secrets {
		e, err := newEntry(s)
		if err != nil {
			return nil, err
		}
		if seen[s.Name] {
			return nil, fmt.Errorf("secret %q: %w: it is given twice", clip(s.Name), ErrInvalid)
		}
		seen[s.Name] = true
		v.entries = append(v.entries, e)
	}
	var err error
	v.authority, err = newAuthority(v.hosts())
	return v, err
}

// newEntry checks a secret. Errors never hold its value.
func newEntry(s Secret) (*entry, error) {
	fail := func(why string) (*entry, error) {
		return nil, fmt.Errorf("secret %q: %w: %s", clip(s.Name), ErrInvalid, why)
	}
	switch {
	case !isVariable(s.Name):
		return fail("its name is that of an environment variable: letters, digits and underscores, no digit first")
	case len(s.Value) < MinSecret:
		return fail(fmt.Sprintf("a value of less than %d bytes cannot be distinguished from other text", MinSecret))
	case len(s.Value) > maxSecretValue:
		return fail(fmt.Sprintf("its value has more than %d bytes", maxSecretValue))
	case strings.ContainsFunc(s.Value, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return fail("its value holds a control character, such as a line break, which no request can carry")
	case len(s.Hosts) == 0:
		return fail("name the hosts that may get it")
	}
	e := &entry{Secret: s, placeholder: placeholderFor(s.Value)}
	for _, text := range s.Hosts {
		r, err := parseRule(text)
		if err != nil {
			return fail(err.Error())
		}
		if r.any || r.prefix.IsValid() && !r.prefix.IsSingleIP() {
			return fail("it is for hosts, not for everything: name them, or *.DOMAIN")
		}
		e.hosts = append(e.hosts, r)
	}
	return e, nil
}

const maxSecretValue = 4 << 10

func isVariable(name string) bool {
	for i, c := range name {
		letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != "" && len(name) <= 200
}

func (v *vault) placeholder(name string) string {
	if v == nil {
		return ""
	}
	for _, e := range v.entries {
		if e.Name == name {
			return e.placeholder
		}
	}
	return ""
}

func (v *vault) hosts() []rule {
	var all []rule
	for _, e := range v.entries {
		all = append(all, e.hosts...)
	}
	return all
}

// pinned reports whether t may get a secret at port.
func (v *vault) pinned(t target, port uint16) bool {
	return len(v.at(t, port)) > 0
}

// at are the secrets that t may get at port.
func (v *vault) at(t target, port uint16) []*entry {
	if v == nil {
		return nil
	}
	var out []*entry
	for _, e := range v.entries {
		if slices.ContainsFunc(e.hosts, func(r rule) bool { return r.matches(t, port) }) {
			out = append(out, e)
		}
	}
	return out
}

// publicPrefixes are beginnings that programs check tokens for. They are no secret.
var publicPrefixes = []string{
	"sk-ant-api03-", "sk-ant-", "sk-proj-", "sk-svcacct-", "sk-or-v1-", "sk-", "pk-", "sk_live_", "sk_test_", "rk_live_", "whsec_",
	"github_pat_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "glpat-", "xoxb-", "xoxp-", "xapp-", "AKIA", "ASIA", "AIza", "ya29.",
	"hf_", "npm_", "pypi-", "gsk_", "xai-", "r8_", "dop_v1_", "SG.", "key-",
}

// minRandom is how many random characters a placeholder has at least.
const minRandom = 20

// placeholderFor makes a random text of the value's shape: its public prefix, its
// separators where it is long enough not to be recognized by them, its alphabet, and at
// least minRandom random characters.
func placeholderFor(value string) string {
	var out strings.Builder
	rest := value
	for _, prefix := range publicPrefixes {
		if strings.HasPrefix(value, prefix) && len(value)-len(prefix) >= MinSecret {
			out.WriteString(prefix)
			rest = value[len(prefix):]
			break
		}
	}
	alphabet := alphabetOf(rest)
	random := 0
	for i := range len(rest) {
		if len(rest) >= minRandom+4 && strings.IndexByte("-_.", rest[i]) >= 0 {
			out.WriteByte(rest[i])
			continue
		}
		out.WriteByte(pick(alphabet))
		random++
	}
	for ; random < minRandom; random++ {
		out.WriteByte(pick(alphabet))
	}
	return out.String()
}

// alphabetOf is the smallest usual alphabet that s is of.
func alphabetOf(s string) string {
	const digits, hex = "0123456789", "0123456789abcdef"
	const alphanumeric = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	s = strings.NewReplacer("-", "", "_", "", ".", "").Replace(s)
	for _, alphabet := range []string{digits, hex, strings.ToUpper(hex), alphanumeric[:26] + digits, alphanumeric[26:]} {
		if strings.Trim(s, alphabet) == "" {
			return alphabet
		}
	}
	return alphanumeric
}

// pick returns a random character.
func pick(alphabet string) byte {
	for {
		var b [1]byte
		_, _ = rand.Read(b[:]) // never fails: the program ends where there is no randomness
		if limit := 256 - 256%len(alphabet); int(b[0]) < limit {
			return alphabet[int(b[0])%len(alphabet)]
		}
	}
}

// addresses are the hosts that are addresses.
func addresses(hosts []rule) []netip.Addr {
	var out []netip.Addr
	for _, r := range hosts {
		if r.prefix.IsValid() {
			out = append(out, r.prefix.Addr())
		}
	}
	return out
}

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
	for _, e := range v.entries {
		if slices.Contains(mine, e) {
			continue
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
	write := writings[0]
	kind, _, _ := mime.ParseMediaType(out.Header.Get("Content-Type")) // unknown is as it is
	switch {
	case kind == "application/x-www-form-urlencoded":
		write = url.QueryEscape
	case kind == "application/json" || strings.HasSuffix(kind, "+json"):
		write = plainjson.Inside
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
	var replaced io.Reader = newReplacer(out.Body, pairs, 1)
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
		replaced = bytes.NewReader(whole)
		out.ContentLength = int64(len(whole))
		out.Header.Set("Content-Length", strconv.Itoa(len(whole)))
	}
	out.Body = struct {
		io.Reader
		io.Closer
	}{replaced, out.Body}
	return nil
}
