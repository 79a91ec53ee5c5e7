package httpapi

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/apitypes"
)

// TestRange: a part of a file is that part, and what is no range is the whole.
func TestRange(t *testing.T) {
	c := serve(t, Config{})
	path, _ := c.create(`{"language": "bash"}`)
	c.want(http.StatusNoContent, nil, http.MethodPut, path+"/files?path=a", "0123456789")
	c.want(http.StatusNoContent, nil, http.MethodPut, path+"/files?path=empty", "", "Content-Type: "+octets)
	c.want(http.StatusOK, nil, http.MethodPost, path+"/exec", `{"argv": ["ln", "-s", "a", "link"]}`)
	for _, test := range []struct {
		file, asked string
		status      int
		is, content string
	}{
		{"a", "bytes=0-3", 206, "bytes 0-3/10", "0123"}, {"a", "bytes=3-3", 206, "bytes 3-3/10", "3"}, {"a", "bytes=7-", 206, "bytes 7-9/10", "789"},
		{"a", "bytes=8-100", 206, "bytes 8-9/10", "89"}, {"a", "bytes=-4", 206, "bytes 6-9/10", "6789"}, {"a", "bytes=-100", 206, "bytes 0-9/10", "0123456789"},
		{"a", "bytes=0-99999999999999999999", 206, "bytes 0-9/10", "0123456789"}, {"a", "bytes=00-01", 206, "bytes 0-1/10", "01"},
		{"a", "bytes=10-", 416, "bytes */10", ""}, {"a", "bytes=99999999999999999999-", 416, "bytes */10", ""}, {"a", "bytes=-0", 416, "bytes */10", ""},
		{"empty", "bytes=0-", 416, "bytes */0", ""}, {"empty", "bytes=-1", 416, "bytes */0", ""},
		{"a", "", 200, "", "0123456789"}, {"a", "bytes=3-2", 200, "", "0123456789"}, {"a", "bytes=0-1,3-4", 200, "", "0123456789"}, {"a", "bytes=-", 200, "", "0123456789"},
		{"a", "bytes=a-b", 200, "", "0123456789"}, {"a", "bytes=--1", 200, "", "0123456789"}, {"a", "bytes=+1-2", 200, "", "0123456789"}, {"a", "lines=0-1", 200, "", "0123456789"},
		{"empty", "", 200, "", ""}, {"link", "bytes=0-3", 200, "", "0123456789"},
	} {
		res, text := c.do(http.MethodGet, path+"/files?path="+test.file, "", "Range: "+test.asked)
		if res.StatusCode != test.status || res.Header.Get("Content-Range") != test.is || test.status != 416 && (text != test.content || res.Header.Get("Accept-Ranges") != "bytes") {
			t.Errorf("%s of %s: got %d %v %q, want %d, %q and %q", test.asked, test.file, res.StatusCode, res.Header, text, test.status, test.is, test.content)
		}
		if test.status == 206 && res.ContentLength != int64(len(test.content)) {
			t.Errorf("%s: got a length of %d, want %d", test.asked, res.ContentLength, len(test.content))
		}
		if h := res.Header; h.Get("X-Content-Type-Options") != "nosniff" || test.status != 416 && h.Get("Content-Disposition") != "attachment" {
			t.Errorf("%s: got %v, want headers by which no browser shows it", test.asked, h)
		}
	}
	if res, text := c.do(http.MethodGet, path+"/files?path=a", "", "Range: bytes=0-3", `If-Range: "x"`); res.StatusCode != 200 || text != "0123456789" {
		t.Errorf("got %d %q, want the whole of a file whose version is not known", res.StatusCode, text)
	}
	c.want(http.StatusNotFound, nil, http.MethodGet, path+"/files?path=none", "", "Range: bytes=0-3")
	c.want(http.StatusUnprocessableEntity, nil, http.MethodGet, path+"/files?path=.", "", "Range: bytes=0-3")
}

// FuzzRange: whatever is asked for, what is answered lies in the file.
func FuzzRange(f *testing.F) {
	for _, seed := range []string{"bytes=0-3", "bytes=-1", "bytes=5-", "bytes=9223372036854775807-9223372036854775808", "bytes=3-2", "bytes=-", "x"} {
		f.Add(seed, int64(10))
	}
	f.Fuzz(func(t *testing.T, asked string, size int64) {
		size = max(size, 0)
		from, length, ok := ranged{Range: asked}.of(size)
		if from < 0 || length < 0 || length > size-from && ok || !ok && length > 0 {
			t.Errorf("got %d bytes from %d on, %t, want them in the %d of the file", length, from, ok, size)
		}
	})
}

// members are those of an archive, with their content.
func members(t *testing.T, text string) map[string]string {
	t.Helper()
	got := map[string]string{}
	for tr := tar.NewReader(strings.NewReader(text)); ; {
		h, err := tr.Next()
		if err == io.EOF {
			return got
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		got[h.Name] = fmt.Sprintf("%c %o %s", h.Typeflag, h.Mode, content)
	}
}

// TestArchive: a directory comes out as it was put in, but for what leads elsewhere.
func TestArchive(t *testing.T) {
	c := serve(t, Config{})
	path, _ := c.create(`{"language": "bash"}`)
	var put bytes.Buffer
	tw := tar.NewWriter(&put)
	large := strings.Repeat("x", 3<<20)
	for _, h := range []*tar.Header{
		{Name: "a.txt", Typeflag: tar.TypeReg, Mode: 0o4777, Size: 1}, {Name: "sub/", Typeflag: tar.TypeDir, Mode: 0o755}, {Name: "sub/b", Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(large))},
		{Name: "../outside", Typeflag: tar.TypeReg, Mode: 0o644, Size: 1}, {Name: "/absolute", Typeflag: tar.TypeReg, Mode: 0o644, Size: 1},
		{Name: "link", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}, {Name: "hard", Typeflag: tar.TypeLink, Linkname: "a.txt"}, {Name: "fifo", Typeflag: tar.TypeFifo},
	} {
		if err := tw.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(tw, large[:h.Size]); err != nil {
			t.Fatal(err)
		}
	}
	if err := tw.Close(); err != nil {
		t.Fatal(err)
	}
	var made apitypes.Unpacked
	c.want(http.StatusOK, &made, http.MethodPut, path+"/files/archive?path=project/deep", put.String(), "Content-Type: "+tarType)
	if made.Files != 2 || made.Bytes != int64(len(large))+1 || len(made.Skipped) != 5 {
		t.Errorf("got %+v, want two files, and five members left out", made)
	}
	var res result
	c.want(http.StatusOK, &res, http.MethodPost, path+"/run", `{"code": "cd project/deep; ls -A . ..; ln -s /etc link; mkfifo fifo; chmod 4777 a.txt; echo outside >../outside"}`)
	if res.Stdout != ".:\na.txt\nsub\n\n..:\ndeep\n" {
		t.Errorf("got %+v, want what is safe", res)
	}
	for query, want := range map[string]map[string]string{
		"project/deep":          {"deep/": "5 755 ", "deep/a.txt": "0 755 x", "deep/sub/": "5 755 ", "deep/sub/b": "0 755 " + large},
		"project/deep&name=new": {"new/": "5 755 ", "new/a.txt": "0 755 x", "new/sub/": "5 755 ", "new/sub/b": "0 755 " + large},
		"project/deep/sub/b":    {"b": "0 755 " + large},
	} {
		res, text := c.do(http.MethodGet, path+"/files/archive?path="+query, "")
		got := members(t, text)
		for name, content := range want {
			if got[name] != content {
				t.Errorf("%s: %s is %.100q, want %.100q", query, name, got[name], content)
			}
			delete(got, name)
		}
		if len(got) > 0 {
			t.Errorf("%s: %v is there too, want nothing else", query, got)
		}
		skipped := map[bool]string{true: "0", false: "2"}[strings.HasSuffix(query, "/b")]
		if h := res.Header; res.StatusCode != http.StatusOK || h.Get("Content-Type") != tarType || h.Get("Content-Disposition") != "attachment" || res.Trailer.Get(apitypes.SkippedTrailer) != skipped {
			t.Errorf("%s: got %d %v %v, want an archive that no browser shows, of which %s are left out", query, res.StatusCode, h, res.Trailer, skipped)
		}
	}
	for _, bad := range []struct {
		status             int
		method, path, body string
	}{
		{404, http.MethodGet, "?path=none", ""}, {422, http.MethodGet, "?path=project/../..", ""}, {404, http.MethodGet, "?path=project/deep/link", ""}, {422, http.MethodGet, "?path=project/deep/fifo", ""},
		{422, http.MethodGet, "?path=project&name=a/b", ""}, {422, http.MethodGet, "", ""}, {422, http.MethodPut, "?path=x", "no archive" + strings.Repeat("x", 1000)}, {422, http.MethodPut, "?path=x", put.String()[:2000]},
		{422, http.MethodPut, "?path=../x", put.String()}, {422, http.MethodPut, "?path=project/deep/link", put.String()}, {422, http.MethodPut, "?path=project/deep/a.txt", put.String()}, {403, http.MethodPut, "?path=/usr/x", put.String()},
	} {
		headers := []string{"Content-Type: " + tarType}
		if res, text := c.do(bad.method, path+"/files/archive"+bad.path, bad.body, headers...); res.StatusCode != bad.status || res.Trailer.Get(apitypes.SkippedTrailer) != "" {
			t.Errorf("%s %s: got %d %.300s, want %d", bad.method, bad.path, res.StatusCode, text, bad.status)
		}
	}
	c.as(keyAReads).want(http.StatusForbidden, nil, http.MethodPut, path+"/files/archive?path=x", put.String(), "Content-Type: "+tarType)
	c.as(keyB).want(http.StatusNotFound, nil, http.MethodGet, path+"/files/archive?path=project", "")
	c.as(keyB).want(http.StatusNotFound, nil, http.MethodPut, path+"/files/archive?path=x", put.String(), "Content-Type: "+tarType)
}

// changes begins to watch, and returns the function that waits for the next event.
func (c *client) changes(path string) (next func() (name string, data string), leave func()) {
	c.t.Helper()
	ctx, leave := context.WithCancel(testContext(c.t))
	res, err := http.DefaultClient.Do(c.request(http.MethodGet, path, "").WithContext(ctx))
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { res.Body.Close() })
	c.t.Cleanup(leave)
	if kind := res.Header.Get("Content-Type"); res.StatusCode != http.StatusOK || kind != eventStream {
		c.t.Fatalf("got %d and %s, want events", res.StatusCode, kind)
	}
	lines := bufio.NewScanner(res.Body)
	return func() (name, data string) {
		for lines.Scan() {
			if value, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
				name = value
			}
			if value, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				return name, value
			}
		}
		return "", ""
	}, leave
}

// TestWatch: changes come as events, also of directories below if that is asked for, until the sandbox ends.
func TestWatch(t *testing.T) {
	c := serve(t, Config{})
	path, _ := c.create(`{"language": "bash"}`)
	c.want(http.StatusNoContent, nil, http.MethodPost, path+"/files/mkdir?path=project/sub", "")
	flat, leave := c.changes(path + "/files/watch?path=project")
	deep, _ := c.as(keyAReads).changes(path + "/files/watch?path=project&recursive=true")
	c.want(http.StatusOK, nil, http.MethodPost, path+"/exec", `{"shell": "touch project/sub/a; touch $(printf 'project/b\\377'); rm project/sub/a; mkdir project/c"}`)
	for what, test := range map[string]struct {
		next func() (string, string)
		want []string
	}{
		"the directory alone": {flat, []string{"create /sandbox/project/b\ufffd false", "create /sandbox/project/c true"}},
		"all below it":        {deep, []string{"create /sandbox/project/sub/a false", "create /sandbox/project/b\ufffd false", "remove /sandbox/project/sub/a false", "create /sandbox/project/c true"}},
	} {
		var got []string
		for len(got) < len(test.want) {
			name, data := test.next()
			var change apitypes.FileChange
			if err := json.Unmarshal([]byte(data), &change); name != "change" || err != nil {
				t.Fatalf("%s: got %s %s, %v, want a change", what, name, data, err)
			}
			if change.Op == llmsandbox.FileCreated || change.Op == llmsandbox.FileRemoved {
				got = append(got, fmt.Sprint(change.Op, " ", change.Path, " ", change.Dir))
			}
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q, want %q", what, got, test.want)
		}
	}
	leave()
	c.want(http.StatusNotFound, nil, http.MethodGet, path+"/files/watch?path=none", "")
	c.as(keyB).want(http.StatusNotFound, nil, http.MethodGet, path+"/files/watch?path=project", "")
	c.want(http.StatusNoContent, nil, http.MethodDelete, path, "")
	for {
		name, data := deep()
		if name == "change" {
			continue // what goes on at the end
		}
		if name != "problem" || !strings.Contains(data, `"not_found"`) {
			t.Errorf("got %s %s, want that the sandbox has ended", name, data)
		}
		return
	}
}

// TestWatchOfStopped: a server that stops ends what has no end of its own.
func TestWatchOfStopped(t *testing.T) {
	c := serve(t, Config{})
	path, _ := c.create(`{"language": "bash"}`)
	next, _ := c.changes(path + "/files/watch?path=.")
	c.server.stop()
	if name, data := next(); name != "problem" || !strings.Contains(data, `"stopping"`) {
		t.Errorf("got %s %s, want that the server stops", name, data)
	}
	c.want(http.StatusServiceUnavailable, nil, http.MethodGet, path+"/files/watch?path=.", "")
}

// TestSigned: a signed URL needs no key, and is good for nothing but what it was signed for.
func TestSigned(t *testing.T) {
	var events []AuditEvent
	c := serve(t, Config{Audit: func(_ context.Context, more []AuditEvent) error { events = append(events, more...); return nil }})
	path, sb := c.create(`{"language": "bash"}`)
	c.want(http.StatusNoContent, nil, http.MethodPut, path+"/files?path=a.txt", "content")
	sign := func(method, file string) string {
		t.Helper()
		var made apitypes.SignedURL
		c.want(http.StatusOK, &made, http.MethodPost, path+"/files/sign", fmt.Sprintf(`{"path": %q, "method": %q, "expires_seconds": 60}`, file, method))
		if left := time.Until(made.Expires); left <= 0 || left > time.Minute || !strings.HasPrefix(made.URL, c.address+signedPath) {
			t.Errorf("got %+v, want a URL of the server for a minute", made)
		}
		return strings.TrimPrefix(made.URL, c.address)
	}
	nobody := c.as("")
	read, write := sign(http.MethodGet, "a.txt"), sign(http.MethodPut, "sub/b.txt")
	for range 2 {
		res, text := nobody.do(http.MethodGet, read, "")
		if h := res.Header; res.StatusCode != 200 || text != "content" || h.Get("Content-Type") != octets || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Content-Disposition") != "attachment" {
			t.Errorf("got %d %v %q, want the content, which no browser shows", res.StatusCode, h, text)
		}
	}
	if res, text := nobody.do(http.MethodGet, read, "", "Range: bytes=3-"); res.StatusCode != 206 || text != "tent" {
		t.Errorf("got %d %q, want a part", res.StatusCode, text)
	}
	large := strings.Repeat("x", apitypes.MaxBody+1)
	nobody.want(http.StatusNoContent, nil, http.MethodPut, write+"?mode=0600", large, "Content-Type: "+octets)
	var file apitypes.FileEntry
	c.want(http.StatusOK, &file, http.MethodGet, path+"/files/stat?path=sub/b.txt", "")
	if file.Size != int64(len(large)) || file.Mode != "0600" {
		t.Errorf("got %+v, want the file that was written", file)
	}
	other := serve(t, Config{})
	expired, err := c.server.sealer.seal(signedPath, time.Now(), &signedFile{Project: "a", Sandbox: sb.ID, Path: "a.txt", Method: http.MethodGet})
	if err != nil {
		t.Fatal(err)
	}
	elsewhere, err := c.server.sealer.seal(signedPath, time.Now().Add(time.Hour), &signedFile{Project: "b", Sandbox: sb.ID, Path: "a.txt", Method: http.MethodGet})
	if err != nil {
		t.Fatal(err)
	}
	changed := []byte(read)
	changed[len(changed)/2] ^= 1
	for _, bad := range []struct {
		c                    *client
		status               int
		method, path, detail string
	}{
		{nobody, 403, http.MethodPut, read, "not signed"}, {nobody, 403, http.MethodGet, write, "not signed"}, {nobody, 403, http.MethodGet, string(changed), "not signed"},
		{nobody, 403, http.MethodGet, read[:len(read)-1], "not signed"}, {nobody, 403, http.MethodGet, signedPath, "not signed"}, {nobody, 403, http.MethodGet, signedPath + "a/b", "not signed"},
		{other.as(""), 403, http.MethodGet, read, "not signed"}, {nobody, 403, http.MethodGet, signedPath + expired, "over"}, {nobody, 404, http.MethodGet, signedPath + elsewhere, "no sandbox"},
		{nobody, 405, http.MethodDelete, read, ""}, {nobody, 405, http.MethodPost, read, ""}, {c, 403, http.MethodPut, read, "not signed"},
		{nobody, 401, http.MethodGet, path + "/files?path=a.txt", ""}, {nobody, 401, http.MethodGet, "/v1/signed", ""},
	} {
		if res, text := bad.c.do(bad.method, bad.path, ""); res.StatusCode != bad.status || !strings.Contains(text, bad.detail) {
			t.Errorf("%s %s: got %d %s, want %d and %q", bad.method, bad.path, res.StatusCode, text, bad.status, bad.detail)
		}
	}
	for _, body := range []string{`{"path": "a", "method": "DELETE", "expires_seconds": 60}`, `{"path": "a", "method": "GET", "expires_seconds": 86401}`, `{"path": "", "method": "GET", "expires_seconds": 60}`, `{"path": "a", "method": "GET"}`} {
		c.want(http.StatusUnprocessableEntity, nil, http.MethodPost, path+"/files/sign", body)
	}
	const good = `{"path": "a", "method": "GET", "expires_seconds": 60}`
	c.as(keyAReads).want(http.StatusForbidden, nil, http.MethodPost, path+"/files/sign", good)
	c.as(keyB).want(http.StatusNotFound, nil, http.MethodPost, path+"/files/sign", good)
	c.want(http.StatusNoContent, nil, http.MethodDelete, path, "")
	nobody.want(http.StatusNotFound, nil, http.MethodGet, read, "")
	c.stop()
	var got []string
	for _, e := range events {
		if strings.Contains(e.Operation, "sign") && e.Status < 400 {
			got = append(got, fmt.Sprintln(e.ProjectID, e.KeyName, e.Operation, e.Sandbox == sb.ID, e.Status, e.Outcome))
		}
	}
	want := []string{
		"a one sign-file true 200 ok\n", "a one sign-file true 200 ok\n", "a one read-signed-file true 200 ok\n", "a one read-signed-file true 200 ok\n",
		"a one read-signed-file true 206 ok\n", "a one write-signed-file true 204 ok\n",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// FuzzToken: no token that the server has not made is good for anything.
func FuzzToken(f *testing.F) {
	sealer, err := newSealer(nil)
	if err != nil {
		f.Fatal(err)
	}
	s := &Server{sealer: sealer}
	token, err := sealer.seal(signedPath, time.Now().Add(time.Hour), &signedFile{Method: http.MethodGet})
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{token, token[:20], "", "!", strings.Repeat("A", 100)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if got, err := s.unseal(text, http.MethodGet); err == nil && text != token {
			t.Errorf("%s: got %+v, want it refused", strconv.Quote(text), got)
		}
	})
}
