package egress

import (
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/llmsandbox/llmsandbox/internal/plainjson"
)

const realValue = "sk-proj-Qz81hU2vX9wL0sTe5RbN7yKd3"

// secretRig has a secret for api.test, TLS and plain, and collects what hosts got.
type secretRig struct {
	*rig
	holder string
	mu     sync.Mutex
	got    []string
}

func newSecretRig(t *testing.T, mode string, allow []string, s Secret) *secretRig {
	s.Name = "API_KEY"
	if s.Value == "" {
		s.Value = realValue
	}
	sr := &secretRig{rig: newRig(t, mode, allow, func(c *Config) { c.Secrets = []Secret{s} })}
	sr.holder = sr.proxy.Placeholder("API_KEY")
	sr.name("api.test", public)
	sr.name("other.test", "93.184.216.35")
	sr.webTLS(public+":443", "api.test", sr.echo)
	sr.web(public+":80", sr.echo)
	sr.webTLS("93.184.216.35:443", "other.test", sr.echo)
	sr.web("93.184.216.35:80", sr.echo)
	return sr
}

// echo hands everything back: what a careless host does (case 71).
func (s *secretRig) echo(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	text := r.Proto + " " + r.Host + r.URL.RequestURI() + "\n"
	for name, values := range r.Header {
		text += name + ": " + strings.Join(values, ",") + "\n"
		w.Header()["X-Echo-"+name] = values
	}
	text += "\n" + string(body)
	s.mu.Lock()
	s.got = append(s.got, text)
	s.mu.Unlock()
	w.Header().Set("Trailer", "X-Last")
	for i := range len(text) { // in pieces, so that values are cut anywhere
		fmt.Fprint(w, text[i:i+1])
		if i%7 == 0 {
			w.(http.Flusher).Flush()
		}
	}
	w.Header().Set("X-Last", r.Header.Get("Authorization"))
}

// do sends a request through the proxy, trusting the sandbox's authority, and returns
// what the host got and everything of the response.
func (s *secretRig) do(t *testing.T, r *http.Request) (host, inside string, response *http.Response) {
	t.Helper()
	c := s.client("http")
	pool := s.authority.Pool()
	pool.AppendCertsFromPEM(s.proxy.CA())
	c.Transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: pool}
	response, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.got) > 0 {
		host = s.got[len(s.got)-1]
	}
	return host, fmt.Sprintln(response.Status, response.Header, response.Trailer, string(body)), response
}

func request(t *testing.T, method, address, body string) *http.Request {
	t.Helper()
	r, err := http.NewRequest(method, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Case 71: the value is put in for its host alone, and never comes back.
func TestAbuse71Secrets(t *testing.T) {
	for _, mode := range []string{"allow", "full"} {
		var allow []string
		if mode == "allow" {
			allow = []string{"*.test"}
		}
		for _, scheme := range []string{"http", "https"} {
			s := newSecretRig(t, mode, allow, Secret{Hosts: []string{"api.test"}})
			basic := func(user string) string {
				return base64.StdEncoding.EncodeToString([]byte("user:" + user))
			}
			ask := func(host string) (string, string) {
				r := request(t, "POST", scheme+"://"+host+"/p/"+s.holder+"?key="+s.holder+"&a=%zz;b", "body "+s.holder)
				r.Header.Set("Authorization", "Bearer "+s.holder)
				r.Header.Set("X-Two", s.holder+" and "+s.holder)
				r.Header.Set("X-Encoded", base64.StdEncoding.EncodeToString([]byte(s.holder)))
				r.Header.Set("Proxy-Authorization", "Basic "+basic("mine"))
				got, inside, _ := s.do(t, r)
				return got, inside
			}
			got, inside := ask("api.test")
			if proto := map[string]string{"http": "HTTP/1.1 ", "https": "HTTP/2.0 "}[scheme]; !strings.HasPrefix(got, proto) {
				t.Errorf("%s: %.40q, want it to begin with %q", scheme, got, proto)
			}
			for _, want := range []string{"Authorization: Bearer " + realValue + "\n", "X-Two: " + realValue + " and " + realValue, "?key=" + realValue + "&a=%zz;b", "/p/" + s.holder, "body " + s.holder} {
				if !strings.Contains(got, want) {
					t.Errorf("%s %s: the host got no %q:\n%s", mode, scheme, want, got)
				}
			}
			if strings.Contains(got, basic("mine")) {
				t.Errorf("what was for the proxy went to the host: %.300q, want strings.Contains(got, basic(\"mine\")) = false", got)
			}
			if strings.Contains(inside, realValue) {
				t.Errorf("%s %s: the value came back, want it not to contain %q:\n%s", mode, scheme, realValue, inside)
			}
			if strings.Count(inside, s.holder) < 7 { // headers, trailer and body of the echo
				t.Errorf("%s %s: the placeholder did not come back, want strings.Count(inside, s.holder) >= 7:\n%s", mode, scheme, inside)
			}

			r := request(t, "GET", scheme+"://api.test/", "")
			r.SetBasicAuth("user", s.holder)
			got, inside, _ = s.do(t, r)
			if !strings.Contains(got, "Authorization: Basic "+basic(realValue)) {
				t.Errorf("basic authentication: the host got, want strings.Contains(got, \"Authorization: Basic \"+basic(realValue)) = true\n%s", got)
			}
			if strings.Contains(inside, basic(realValue)) || !strings.Contains(inside, basic(s.holder)) {
				t.Errorf("basic authentication came back, want strings.Contains(inside, basic(realValue)) = false, strings.Contains(inside, basic(s.holder)) = true:\n%s", inside)
			}

			got, _ = ask("other.test")
			if strings.Contains(got, realValue) || !strings.Contains(got, "Bearer "+s.holder) {
				t.Errorf("%s %s: another host got, want got without %q, got containing %q\n%s", mode, scheme, realValue, "Bearer "+s.holder, got)
			}
			s.proxy.Close()
			noted := false
			for _, a := range s.attempts {
				if strings.Contains(fmt.Sprint(a), realValue) {
					t.Errorf("the log has the value: %+v, want it not to contain %q", a, realValue)
				}
				noted = noted || a.Name == "other.test" && strings.Contains(a.Reason, "API_KEY")
			}
			if noted != (scheme == "http") { // inside another host's TLS it cannot be seen
				t.Errorf("%s: a placeholder for another host was noted: %v, want %v", scheme, noted, scheme == "http")
			}
		}
	}
}

// The certificate of another host is its own: only hosts of secrets are answered for.
func TestOnlyHostsOfSecretsAreAnsweredFor(t *testing.T) {
	s := newSecretRig(t, "full", nil, Secret{Hosts: []string{"api.test:443"}})
	for host, ours := range map[string]bool{"api.test": true, "other.test": false} {
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(s.proxy.CA())
		c, _, _ := s.connect(host + ":443")
		err := tls.Client(c, &tls.Config{ServerName: host, RootCAs: pool}).Handshake()
		if (err == nil) != ours {
			t.Errorf("%s: %v, want success = %v", host, err, ours)
		}
	}
	block, err := x509.ParseCertificate(pemBytes(t, s.proxy.CA()))
	if err != nil {
		t.Fatal(err)
	}
	if !block.PermittedDNSDomainsCritical || len(block.PermittedDNSDomains) != 1 || !block.MaxPathLenZero {
		t.Errorf("the authority is not bound to its hosts: %+v, want PermittedDNSDomainsCritical true, len(block.PermittedDNSDomains) = 1, MaxPathLenZero true", block.PermittedDNSDomains)
	}
}

// A host whose certificate is not valid gets nothing.
func TestSecretsNeedAValidCertificate(t *testing.T) {
	s := newSecretRig(t, "full", nil, Secret{Hosts: []string{"api.test"}})
	s.webTLS(public+":443", "imposter.test", s.echo)
	r := request(t, "GET", "https://api.test/", "")
	r.Header.Set("Authorization", s.holder)
	got, inside, response := s.do(t, r)
	if got != "" || response.StatusCode != http.StatusBadGateway || !strings.Contains(inside, "certificate") {
		t.Errorf("got %q, answered %s, want got empty, StatusCode = %d, inside containing \"certificate\"", got, inside, http.StatusBadGateway)
	}
}

func TestSecretsInBodies(t *testing.T) {
	const odd = `p"ss&w\rd <9>`
	for kind, want := range map[string]string{
		"text/plain":                        odd,
		"application/json":                  `p\"ss&w\\rd <9>`,
		"application/vnd.x+json":            `p\"ss&w\\rd <9>`,
		"application/x-www-form-urlencoded": url.QueryEscape(odd),
	} {
		s := newSecretRig(t, "full", nil, Secret{Value: odd, Hosts: []string{"api.test"}, Body: true})
		for _, length := range []int64{0, -1} {
			r := request(t, "POST", "https://api.test/", "<"+s.holder+">"+strings.Repeat("x", 100))
			if length < 0 {
				r.ContentLength = length
			}
			r.Header.Set("Content-Type", kind)
			got, inside, _ := s.do(t, r)
			if !strings.Contains(got, "<"+want+">xxx") {
				t.Errorf("%s: the host got, want it to contain %q\n%s", kind, "<"+want+">xxx", got)
			}
			if strings.Contains(inside, want) {
				t.Errorf("%s: the value came back, want it not to contain %q\n%s", kind, want, inside)
			}
		}
	}
}

// A value must not come back in an encoding that hides it from us.
func TestEncodedAnswers(t *testing.T) {
	s := newSecretRig(t, "full", nil, Secret{Hosts: []string{"api.test"}})
	s.web(public+":80", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept-Encoding") != "identity" {
			t.Errorf("asked for %q, want \"identity\"", r.Header.Get("Accept-Encoding"))
		}
		w.Header().Set("Content-Encoding", r.URL.Path[1:])
		z := gzip.NewWriter(w)
		fmt.Fprint(z, r.Header.Get("X-Key"))
		_ = z.Close()
	})
	for encoding, want := range map[string]int{"gzip": 200, "br": 403, "zstd": 403, "gzip, br": 403} {
		r := request(t, "GET", "http://api.test/"+url.PathEscape(encoding), "")
		r.Header.Set("X-Key", s.holder)
		r.Header.Set("Accept-Encoding", "gzip")
		_, inside, response := s.do(t, r)
		if response.StatusCode != want || strings.Contains(inside, realValue) || want == 200 && !strings.Contains(inside, s.holder) {
			t.Errorf("%s: %s, want StatusCode = %v, inside without %q, want != 200 or inside containing %q", encoding, inside, want, realValue, s.holder)
		}
	}
}

func TestEchoesInEveryWriting(t *testing.T) {
	for _, value := range []string{realValue, `a"b\c<d>&e/f g+h`, "päßwörd-päßwörd", "12345678"} {
		e, err := newEntry(Secret{Name: "A", Value: value, Hosts: []string{"a.test"}})
		if err != nil {
			t.Fatal(err)
		}
		pairs := e.echoes()
		for _, p := range pairs {
			if len(p.from) != len(p.to) {
				t.Errorf("%q and %q differ in length, want len(p.from) = %v", p.from, p.to, len(p.to))
			}
		}
		for _, write := range writings {
			text := "x" + write(value) + "y" + write(value) + write(value)
			for _, src := range []io.Reader{strings.NewReader(text), iotest.OneByteReader(strings.NewReader(text)), iotest.DataErrReader(strings.NewReader(text))} {
				got, err := io.ReadAll(newReplacer(src, pairs, 1))
				if err != nil || strings.Contains(string(got), write(value)) || len(got) != len(text) {
					t.Errorf("%q became %q, %v, want no error, strings.Contains(string(got), write(value)) = false, len(got) = %v", text, got, err, len(text))
				}
			}
		}
		for shift := range 3 {
			text := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("u", 3+shift) + value + "tail"))
			got := replaceAll(text, pairs)
			plain, err := base64.StdEncoding.DecodeString(got)
			if err != nil || len(value) > 10 && strings.Contains(string(plain), value) {
				t.Errorf("%q came back as %q, %v", value, plain, err)
			}
		}
	}
}

func TestReplacerHoldsNothingThatIsDecided(t *testing.T) {
	r, w := io.Pipe()
	defer w.Close()
	rep := newReplacer(r, []pair{{[]byte("secret"), []byte("PUBLIC")}}, 1)
	for _, step := range [][2]string{{"hello\n", "hello\n"}, {"a sec", "a "}, {"ond\n", "second\n"}, {"secsecret", "secPUBLIC"}} {
		go func() { _, _ = w.Write([]byte(step[0])) }()
		b := make([]byte, 100)
		n, err := rep.Read(b)
		if err != nil || string(b[:n]) != step[1] {
			t.Fatalf("after %q read %q, %v, want %q", step[0], b[:n], err, step[1])
		}
	}
}

func TestPlaceholders(t *testing.T) {
	seen := map[string]bool{}
	for _, value := range []string{
		realValue, "ghp_0123456789abcdefghijABCDEFGHIJ012345", "AKIAIOSFODNN7EXAMPLE", "0123456789abcdef0123456789abcdef",
		"550e8400-e29b-41d4-a716-446655440000", "12345678", "hunter-22", strings.Repeat("long", 1000), "xoxb-123-456-abcdefghijklmnop",
	} {
		p := placeholderFor(value)
		if p == value || seen[p] || p == placeholderFor(value) {
			t.Errorf("%.40q: %.40q is not its own", value, p)
		}
		seen[p] = true
		if len(p) < len(value) || len(p) > len(value)+minRandom {
			t.Errorf("%.40q: %.40q is of length %d, want len(p) >= %d, len(p) <= %d", value, p, len(p), len(value), len(value)+minRandom)
		}
		if len(value) >= 24 && strings.Count(p, "-") != strings.Count(value, "-") {
			t.Errorf("%.40q: placeholder %.40q has another number of dashes, want as many as the value", value, p)
		}
		if url.QueryEscape(p) != p || plainjson.Inside(p) != p {
			t.Errorf("%.40q has to be escaped", p)
		}
	}
	if p := placeholderFor(realValue); !strings.HasPrefix(p, "sk-proj-") || len(p) != len(realValue) {
		t.Errorf("%q, want p beginning with \"sk-proj-\", len(p) = %v", p, len(realValue))
	}
}

func TestSecretsThatMakeNoSense(t *testing.T) {
	good := Secret{Name: "A", Value: "12345678", Hosts: []string{"a.test"}}
	for what, edit := range map[string]func(*Secret){
		"no name": func(s *Secret) { s.Name = "" }, "bad name": func(s *Secret) { s.Name = "A=B" }, "digit": func(s *Secret) { s.Name = "1A" },
		"short": func(s *Secret) { s.Value = "1234567" }, "long": func(s *Secret) { s.Value = strings.Repeat("x", maxSecretValue+1) },
		"line break": func(s *Secret) { s.Value = "1234567\n8" }, "no host": func(s *Secret) { s.Hosts = nil },
		"every host": func(s *Secret) { s.Hosts = []string{"*"} }, "range": func(s *Secret) { s.Hosts = []string{"10.0.0.0/8"} },
		"bad host": func(s *Secret) { s.Hosts = []string{"a b"} },
	} {
		s := good
		edit(&s)
		p, err := ParsePolicy("full", nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := New(Config{Policy: p, Secrets: []Secret{s}}); !errors.Is(err, ErrInvalid) || s.Value != "" && strings.Contains(err.Error(), s.Value) {
			t.Errorf("%s: %v, want ErrInvalid, Value empty or an error without %q", what, err, s.Value)
		}
	}
	if _, err := newVault([]Secret{good, good}); !errors.Is(err, ErrInvalid) {
		t.Errorf("twice: %v, want ErrInvalid", err)
	}
	if _, err := newVault(make([]Secret, maxSecrets+1)); !errors.Is(err, ErrInvalid) {
		t.Errorf("too many: %v, want ErrInvalid", err)
	}
}

func TestLargeAnswersAreStreamed(t *testing.T) {
	s := newSecretRig(t, "full", nil, Secret{Hosts: []string{"api.test"}})
	block := bytes.Repeat([]byte("sk-proj-"), 8<<10)
	s.web(public+":80", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(len(block)*100))
		for range 100 {
			_, _ = w.Write(block)
		}
	})
	response, err := s.client("http").Get("http://api.test/")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if n, err := io.Copy(io.Discard, response.Body); err != nil || n != int64(len(block)*100) || response.ContentLength != n {
		t.Errorf("%d of %d, %v, want no error, n = %d, ContentLength = %d", n, response.ContentLength, err, int64(len(block)*100), n)
	}
}
