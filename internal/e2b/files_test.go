package e2b

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/llmsandbox/llmsandbox"
)

const envd = "49983"

// get makes a request for a file, with headers "Name: value".
func (b *box) get(path string, headers ...string) (*http.Response, string) {
	b.t.Helper()
	r, err := http.NewRequestWithContext(testContext(b.t), http.MethodGet, b.url+"/files?path="+url.QueryEscape(path), nil)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		r.Header.Set(name, value)
	}
	res, err := b.client(envd).Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer res.Body.Close() //nolint:errcheck // it was read
	text, err := io.ReadAll(res.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return res, string(text)
}

// write writes a file as SDKs do, whose request has its path.
func (b *box) write(path, content string) {
	b.t.Helper()
	if status, text := b.do(envd, http.MethodPost, "/files?path="+url.QueryEscape(path), "application/octet-stream", content); status != http.StatusOK {
		b.t.Fatalf("write %s: status %d, body %s, want 200", path, status, text)
	}
}

// shell runs a line in the sandbox.
func (b *box) shell(line string) string {
	b.t.Helper()
	res, err := b.sandbox.Shell(testContext(b.t), line, nil)
	if err != nil || res.Status != llmsandbox.StatusOK {
		b.t.Fatalf("%s: %v, error %v, want status ok", line, res, err)
	}
	return res.Stdout
}

// form is a body with files, each named by itself where it has a name.
func form(t *testing.T, files ...[2]string) (contentType, body string) {
	t.Helper()
	var text bytes.Buffer
	w := multipart.NewWriter(&text)
	for _, f := range files {
		disposition := `form-data; name="file"`
		if f[0] != "" {
			disposition += `; filename="` + f[0] + `"`
		}
		part, err := w.CreatePart(textproto.MIMEHeader{"Content-Disposition": {disposition}, "Content-Type": {"application/octet-stream"}})
		if err == nil {
			_, err = io.WriteString(part, f[1])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return w.FormDataContentType(), text.String()
}

// TestUploads: forms, whose parts keep their paths, and plain bodies, also packed ones.
func TestUploads(t *testing.T) {
	b := serve(t).open(llmsandbox.Options{})
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	if _, err := io.WriteString(zip, "was packed"); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	several, severalBody := form(t, [2]string{"deep/er/a.txt", "A"}, [2]string{"/home/user/ü \\\\ b", "B"}, [2]string{"~/c", ""})
	unnamed, unnamedBody := form(t, [2]string{"", "no name"})
	twice, twiceBody := form(t, [2]string{"x", "1"}, [2]string{"./x", "2"})
	b.shell("ln -s linked.txt link; mkdir dir")
	const octets = "application/octet-stream"
	for _, test := range []struct {
		name, query, contentType, body, encoding string
		status                                   int
		says                                     string
		file, content                            string
	}{
		{"several", "", several, severalBody, "", 200, `[{"path":"/home/user/deep/er/a.txt","name":"a.txt","type":"file"},{"path":"/home/user/ü \\ b","name":"ü \\ b","type":"file"},` +
			`{"path":"/home/user/c","name":"c","type":"file"}]`, "deep/er/a.txt", "A"},
		{"another of them", "", several, severalBody, "", 200, "", "/home/user/ü \\ b", "B"},
		{"without a name", "path=n.txt", unnamed, unnamedBody, "", 200, `"name":"n.txt"`, "n.txt", "no name"},
		{"without any", "", unnamed, unnamedBody, "", 400, "path is missing", "", ""},
		{"twice", "", twice, twiceBody, "", 400, "two files", "", ""},
		{"cut off", "", several, severalBody[:len(severalBody)-20], "", 400, "", "", ""},
		{"plain", "path=~/p.txt&username=user", octets, "plain", "", 200, `"path":"/home/user/p.txt"`, "p.txt", "plain"},
		{"plain without a path", "", octets, "plain", "", 400, "path is missing", "", ""},
		{"packed", "path=z.txt", octets, packed.String(), "gzip", 200, "", "z.txt", "was packed"},
		{"packed and cut off", "path=z2.txt", octets, packed.String()[:packed.Len()-4], "gzip", 400, "did not come whole", "", ""},
		{"not packed", "path=z3.txt", octets, "plain", "gzip", 400, "no gzip", "", ""},
		{"packed otherwise", "path=z4.txt", octets, "plain", "br", 400, "br", "", ""},
		{"a link", "path=link", octets, "through", "", 200, `"path":"/home/user/link"`, "linked.txt", "through"},
		{"a directory", "path=dir", octets, "x", "", 400, "is a directory", "", ""},
		{"below a file", "path=p.txt/x", octets, "x", "", 400, "", "", ""},
		{"another user", "path=x&username=eve", octets, "x", "", 401, "invalid username: 'eve'", "", ""},
		{"another type", "path=x", "text/plain", "x", "", 400, "neither", "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, err := http.NewRequestWithContext(testContext(t), http.MethodPost, b.url+"/files?"+test.query, strings.NewReader(test.body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", test.contentType)
			if test.encoding != "" {
				r.Header.Set("Content-Encoding", test.encoding)
			}
			res, err := b.client(envd).Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close() //nolint:errcheck // it was read
			text, err := io.ReadAll(res.Body)
			if err != nil || res.StatusCode != test.status || !strings.Contains(string(text), test.says) {
				t.Fatalf("status %d, body %s, error %v; want status %d and %s", res.StatusCode, text, err, test.status, test.says)
			}
			if test.file == "" {
				return
			}
			if got, err := b.sandbox.ReadFile(testContext(t), test.file); err != nil || string(got) != test.content {
				t.Errorf("the file has %q, error %v, want %q", got, err, test.content)
			}
		})
	}
	r, err := http.NewRequestWithContext(testContext(t), http.MethodPost, b.url+"/files?path=with", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", octets)
	r.Header.Set("X-Metadata-Author", "me")
	res, err := b.client(envd).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close() //nolint:errcheck // it is not read
	if res.StatusCode != http.StatusBadRequest {
		t.Errorf("metadata: status %d, want that it is refused", res.StatusCode)
	}
	if got := b.shell("ls with 2>/dev/null; stat -c %a p.txt deep; readlink link"); got != "644\n755\nlinked.txt\n" {
		t.Errorf("got %q, want the permissions 644 and 755, and the link", got)
	}
}

// TestDownloads: whole files and parts, with what is known of them.
func TestDownloads(t *testing.T) {
	b := serve(t).open(llmsandbox.Options{})
	big := strings.Repeat("0123456789abcdef", 100_000)
	b.write("big.bin", big)
	b.write("ä.txt", "text")
	b.write("page.html", "<script>alert(1)</script>")
	b.write("empty", "")
	b.shell("ln -s big.bin link; ln -s nowhere dangling; ln -s loop loop; mkdir dir; ln -s /proc/self/status kernel")
	whole, _ := b.get("big.bin")
	for _, test := range []struct {
		name, path string
		headers    []string
		status     int
		content    string
		want       map[string]string
	}{
		{"whole", "big.bin", nil, 200, big, map[string]string{"Content-Length": "1600000", "Accept-Ranges": "bytes", "Content-Disposition": "inline; filename=big.bin"}},
		{"absolute", "/home/user/ä.txt", nil, 200, "text", map[string]string{"Content-Disposition": "inline; filename*=utf-8''%C3%A4.txt"}},
		{"a part", "big.bin", []string{"Range: bytes=16-18"}, 206, "012", map[string]string{"Content-Range": "bytes 16-18/1600000"}},
		{"the end", "big.bin", []string{"Range: bytes=-3"}, 206, "def", nil},
		{"beyond", "big.bin", []string{"Range: bytes=1600000-"}, 416, "invalid range: failed to overlap\n", nil},
		{"unchanged", "big.bin", []string{"If-None-Match: " + whole.Header.Get("Etag")}, 304, "", nil},
		{"a link", "link", []string{"Range: bytes=0-1"}, 206, "01", map[string]string{"Content-Disposition": "inline; filename=link"}},
		{"empty", "empty", nil, 200, "", map[string]string{"Content-Length": "0"}},
		{"a page", "page.html", nil, 200, "<script>alert(1)</script>", map[string]string{
			"Content-Security-Policy": "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:", "X-Content-Type-Options": "nosniff"}},
		{"missing", "nothing", nil, 404, `{"code":404,"message":"stat \"/home/user/nothing\": no such file or directory"}`, nil},
		{"dangling", "dangling", nil, 404, `{"code":404,"message":"stat \"/home/user/nowhere\": no such file or directory"}`, nil},
		{"loop", "loop", nil, 400, `{"code":400,"message":"path '/home/user/loop': too many links"}`, nil},
		{"a directory", "dir", nil, 400, `{"code":400,"message":"path '/home/user/dir' is a directory"}`, nil},
		{"the home", "", nil, 400, `{"code":400,"message":"path '/home/user' is a directory"}`, nil},
		{"no file", "/dev/null", nil, 400, `{"code":400,"message":"path '/dev/null' is not a regular file"}`, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			res, text := b.get(test.path, test.headers...)
			if res.StatusCode != test.status || text != test.content {
				t.Errorf("status %d, %d bytes %.200q, want status %d, %d bytes %.200q", res.StatusCode, len(text), text, test.status, len(test.content), test.content)
			}
			for name, want := range test.want {
				if got := res.Header.Get(name); got != want {
					t.Errorf("%s: %s, want %s", name, got, want)
				}
			}
		})
	}
	for _, path := range []string{"/proc/self/status", "kernel"} {
		if res, text := b.get(path); res.StatusCode != http.StatusOK || !strings.HasPrefix(text, "Name:\tcat\n") {
			t.Errorf("%s: status %d, %q, want 200 and the status of a program", path, res.StatusCode, text)
		}
	}
	if res, text := b.get("/proc/1/environ"); res.StatusCode != http.StatusForbidden || !strings.Contains(text, "ermission denied") {
		t.Errorf("status %d, %q, want 403: the agent's own files are not for clients", res.StatusCode, text)
	}
}

// TestCompose: files are joined in their order, and gone then.
func TestCompose(t *testing.T) {
	b := serve(t).open(llmsandbox.Options{})
	for _, name := range []string{"1", "2", "3"} {
		b.write(name, strings.Repeat(name, 100_000))
	}
	for body, says := range map[string]string{
		`{"source_paths":["1","1"],"destination":"d"}`:    "is there twice",
		`{"source_paths":["1","2"],"destination":"./2"}`:  "is there twice",
		`{"source_paths":["1","none"],"destination":"d"}`: "no such file",
		`{"source_paths":["1","/tmp"],"destination":"d"}`: "not a regular file",
		`{"source_paths":[],"destination":"d"}`:           "needed",
		`no`:                                              "not what this request takes",
	} {
		if status, text := b.do(envd, http.MethodPost, "/files/compose", "application/json", body); status < 400 || !strings.Contains(text, says) {
			t.Errorf("%s: status %d, body %s, want a refusal with %q", body, status, text, says)
		}
	}
	const want = `{"path":"/home/user/new/d","name":"d","type":"file"}`
	if status, text := b.do(envd, http.MethodPost, "/files/compose", "application/json", `{"source_paths":["2","1","3"],"destination":"new/d"}`); status != 200 || text != want {
		t.Fatalf("status %d, body %s, want 200 and %s", status, text, want)
	}
	if _, text := b.get("new/d"); text != strings.Repeat("2", 100_000)+strings.Repeat("1", 100_000)+strings.Repeat("3", 100_000) {
		t.Errorf("got %d bytes, want the three in their order", len(text))
	}
	if got := b.shell("ls"); got != "new\n" {
		t.Errorf("got %q, want only new", got)
	}
}

// TestSignatures: a signature counts for what it was made for and until it expires, where there is no token, with and without the name of its sandbox.
func TestSignatures(t *testing.T) {
	h := serve(t)
	b := h.open(llmsandbox.Options{})
	h.open(llmsandbox.Options{}).write("f.txt", "of another")
	b.write("f.txt", "content")
	token := b.server.accessToken(b.sandbox.ID())
	sign := func(parts ...string) string {
		sum := sha256.Sum256([]byte(strings.Join(parts, ":")))
		return "v1_" + base64.RawStdEncoding.EncodeToString(sum[:])
	}
	soon, past := strconv.FormatInt(time.Now().Add(time.Hour).Unix(), 10), "1700000000"
	const invalid, expired = `{"code":401,"message":"invalid signature"}`, `{"code":401,"message":"signature is already expired"}`
	for _, test := range []struct {
		name, method, path, user, signature, expiration, token string
		status                                                 int
		body                                                   string
	}{
		{"read", "GET", "f.txt", "", sign("f.txt", "read", "", token), "", "", 200, "content"},
		{"as a user", "GET", "f.txt", "user", sign("f.txt", "read", "user", token), "", "", 200, "content"},
		{"until", "GET", "f.txt", "", sign("f.txt", "read", "", token, soon), soon, "", 200, "content"},
		{"write", "POST", "g.txt", "", sign("g.txt", "write", "", token), "", "", 200, `[{"path":"/home/user/g.txt","name":"g.txt","type":"file"}]`},
		{"expired", "GET", "f.txt", "", sign("f.txt", "read", "", token, past), past, "", 401, expired},
		{"forged and expired", "GET", "f.txt", "", sign("f.txt", "read", "", "x", past), past, "", 401, invalid},
		{"prolonged", "GET", "f.txt", "", sign("f.txt", "read", "", token, past), soon, "", 401, invalid},
		{"without its end", "GET", "f.txt", "", sign("f.txt", "read", "", token, past), "", "", 401, invalid},
		{"another file", "GET", "g.txt", "", sign("f.txt", "read", "", token), "", "", 401, invalid},
		{"another operation", "POST", "f.txt", "", sign("f.txt", "read", "", token), "", "", 401, invalid},
		{"another user", "GET", "f.txt", "root", sign("f.txt", "read", "", token), "", "", 401, invalid},
		{"empty", "GET", "f.txt", "", "", "", "", 401, invalid},
		{"with the token", "GET", "f.txt", "", "x", "", token, 200, "content"},
		{"with a wrong token", "GET", "f.txt", "", sign("f.txt", "read", "", token), "", "x", 401, `{"code":401,"message":"the header X-Access-Token is not the sandbox's token"}`},
	} {
		ask := func(t *testing.T, host string) {
			q := url.Values{"path": {test.path}, "signature": {test.signature}}
			if test.user != "" {
				q.Set("username", test.user)
			}
			if test.expiration != "" {
				q.Set("signature_expiration", test.expiration)
			}
			r, err := http.NewRequestWithContext(testContext(t), test.method, b.url+"/files?"+q.Encode(), strings.NewReader("new"))
			if err != nil {
				t.Fatal(err)
			}
			r.Host = host
			r.Header.Set("Content-Type", "application/octet-stream")
			if test.token != "" {
				r.Header.Set(tokenHeader, test.token)
			}
			res, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close() //nolint:errcheck // it was read
			text, err := io.ReadAll(res.Body)
			if diff := cmp.Diff(fmt.Sprint(test.status, test.body), fmt.Sprint(res.StatusCode, string(text))); err != nil || diff != "" {
				t.Errorf("error %v, -want +got: %s", err, diff)
			}
			// Nothing at the server's own name is for a browser to show or run.
			if got := res.Header.Get("Content-Disposition"); test.method == http.MethodGet && res.StatusCode == http.StatusOK && strings.HasPrefix(got, "attachment") != (host == "") {
				t.Errorf("Content-Disposition %q for a request to the name %q", got, host)
			}
		}
		t.Run(test.name, func(t *testing.T) { ask(t, envd+"-"+outerID(b.sandbox.ID())+".sandboxes.test") })
		if test.token == "" {
			t.Run(test.name+" without a name", func(t *testing.T) { ask(t, "") })
		}
	}
	t.Run("too long", func(t *testing.T) {
		res, err := http.Get(b.url + "/files?signature=x&path=" + strings.Repeat("a", maxSigned)) //nolint:noctx // it is answered at once
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close() //nolint:errcheck // nothing is read
		if res.StatusCode != http.StatusRequestURITooLong {
			t.Errorf("status %d, want 414", res.StatusCode)
		}
	})
}
