package client_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/client"
	"github.com/llmsandbox/llmsandbox/httpapi"
	"github.com/llmsandbox/llmsandbox/security"
)

// ofNone is a backend and a writer that must not be asked for anything.
type ofNone struct {
	backend.Backend
	io.Writer
}

// TestSandbox follows a sandbox from its opening to its end.
func TestSandbox(t *testing.T) {
	c := use(t)
	sb, err := c.Open(testContext(t), &llmsandbox.Options{
		Language: "sh", Labels: map[string]string{"user": "x=y"}, Env: map[string]string{"A": "b"}, Lifetime: 10 * time.Minute, IdleTimeout: 5 * time.Minute,
		Limits: llmsandbox.Limits{PIDs: 64, Output: 1 << 20}, Resettable: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	if sb.Language() != "bash" || !maps.Equal(sb.Labels(), map[string]string{"user": "x=y"}) || sb.ID() == "" {
		t.Errorf("got %q, %q, %v, want what was asked for", sb.ID(), sb.Language(), sb.Labels())
	}
	sb.Labels()["user"] = "changed"
	if got := sb.Labels()["user"]; got != "x=y" {
		t.Errorf("got label %q, want the caller's map to be its own", got)
	}
	if res, err := sb.Run(testContext(t), "echo $A >kept; cat kept", nil); err != nil || res.Stdout != "b\n" {
		t.Errorf("got %+v, %v, want b", res, err)
	}
	only := func() backend.Info {
		t.Helper()
		list, err := c.List(testContext(t), nil)
		if err != nil || len(list) != 1 || list[0].ID != sb.ID() {
			t.Fatalf("got %v, %v, want sandbox %s", list, err, sb.ID())
		}
		return list[0]
	}
	before := only()
	if before.Limits.PIDs != 64 || before.IdleTimeout != 5*time.Minute || before.Backend != "local" || before.Created.IsZero() || before.Labels["user"] != "x=y" {
		t.Errorf("got %+v, want what was asked for", before)
	}
	at := time.Now().Add(2 * time.Minute)
	if err := sb.SetDeadline(testContext(t), at); err != nil {
		t.Error(err)
	}
	// The server counts from when it is asked.
	if after := only(); !after.Deadline.Before(before.Deadline) || after.Deadline.Before(at.Add(-time.Second)) {
		t.Errorf("got the deadline %v, want one not before %v and before %v", after.Deadline, at, before.Deadline)
	}
	if err := sb.SetNetwork(testContext(t), llmsandbox.Network{}); err != nil {
		t.Errorf("got %v, want no network to be allowed", err)
	}
	if err := sb.Reset(testContext(t)); err != nil {
		t.Error(err)
	}
	if _, err := sb.Stat(testContext(t), "kept"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want fs.ErrNotExist after a reset", err)
	}
	pauseAndResume(t, c, sb)
	for range 2 {
		if err := sb.Close(); err != nil {
			t.Errorf("close: got %v, want no error", err)
		}
	}
	if _, err := c.Attach(testContext(t), sb.ID()); !errors.Is(err, llmsandbox.ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound after Close", err)
	}
	if res, err := sb.Run(testContext(t), "true", nil); !errors.Is(err, llmsandbox.ErrClosed) || res.Status != llmsandbox.StatusSetupFailed {
		t.Errorf("got %+v, %v, want ErrClosed", res, err)
	}
	ctx := testContext(t)
	for name, call := range map[string]func() error{
		"exec":     func() error { _, err := sb.Exec(ctx, []string{"true"}, nil); return err },
		"read":     func() error { _, err := sb.ReadFile(ctx, "a"); return err },
		"write":    func() error { return sb.WriteFile(ctx, "a", nil) },
		"from":     func() error { return sb.WriteFileFrom(ctx, "a", strings.NewReader(""), 0) },
		"mkdir":    func() error { return sb.Mkdir(ctx, "a") },
		"reset":    func() error { return sb.Reset(ctx) },
		"deadline": func() error { return sb.SetDeadline(ctx, time.Now()) },
		"stream": func() (err error) {
			for _, err = range sb.Stream(ctx, "true", nil) {
			}
			return err
		},
	} {
		if err := call(); !errors.Is(err, llmsandbox.ErrClosed) {
			t.Errorf("%s: got %v, want ErrClosed", name, err)
		}
	}
	if err := sb.Destroy(testContext(t)); err != nil {
		t.Errorf("destroy: got %v, want no error for what has ended", err)
	}
}

// TestAttach: a handle on another's sandbox leaves it alone, unless it is to be destroyed.
func TestAttach(t *testing.T) {
	c := use(t)
	sb := open(t, c, llmsandbox.Options{Labels: map[string]string{"n": "1"}})
	attach := func() *client.Sandbox {
		t.Helper()
		other, err := c.Attach(testContext(t), sb.ID())
		if err != nil || other.ID() != sb.ID() || other.Language() != "bash" || other.Labels()["n"] != "1" {
			t.Fatalf("got %v, %v, want sandbox %s", other, err, sb.ID())
		}
		return other
	}
	other := attach()
	if err := other.Close(); err != nil {
		t.Error(err)
	}
	if err := other.Mkdir(testContext(t), "x"); !errors.Is(err, llmsandbox.ErrClosed) {
		t.Errorf("got %v, want ErrClosed", err)
	}
	if res, err := sb.Exec(testContext(t), []string{"true"}, nil); err != nil || !res.OK() {
		t.Errorf("got %+v, %v, want the sandbox to live on", res, err)
	}
	if err := attach().Destroy(testContext(t)); err != nil {
		t.Error(err)
	}
	_, err := sb.Stat(testContext(t), ".")
	if !errors.Is(err, llmsandbox.ErrNotFound) || !errors.Is(err, llmsandbox.ErrClosed) || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want ErrNotFound and ErrClosed, and no file that is missing", err)
	}
	if _, err := c.Attach(testContext(t), "../x"); !errors.Is(err, llmsandbox.ErrInvalid) {
		t.Errorf("got %v, want ErrInvalid", err)
	}
}

// TestDeadlineThatHasPassed: it ends the sandbox at once, and what has ended needs none.
func TestDeadlineThatHasPassed(t *testing.T) {
	c := use(t)
	sb := open(t, c, llmsandbox.Options{})
	for range 2 {
		if err := sb.SetDeadline(testContext(t), time.Now()); err != nil {
			t.Errorf("got %v, want no error", err)
		}
	}
	if list, err := c.List(testContext(t), nil); err != nil || len(list) != 0 {
		t.Errorf("got %v, %v, want no sandbox", list, err)
	}
}

// TestList: sandboxes by their labels.
func TestList(t *testing.T) {
	c := use(t)
	first := open(t, c, llmsandbox.Options{Labels: map[string]string{"n": "1", "odd": "yes, &"}})
	second := open(t, c, llmsandbox.Options{Labels: map[string]string{"n": "2", "empty": ""}})
	for name, test := range map[string]struct {
		labels map[string]string
		want   []string
	}{
		"all": {nil, []string{first.ID(), second.ID()}}, "one": {map[string]string{"n": "2"}, []string{second.ID()}},
		"both": {map[string]string{"n": "1", "odd": "yes, &"}, []string{first.ID()}}, "none": {map[string]string{"n": "1", "odd": "no"}, nil},
		"empty": {map[string]string{"empty": ""}, []string{second.ID()}},
	} {
		list, err := c.List(testContext(t), test.labels)
		var got []string
		for _, i := range list {
			got = append(got, i.ID)
		}
		if err != nil || fmt.Sprint(got) != fmt.Sprint(test.want) {
			t.Errorf("%s: got %v, %v, want %v", name, got, err, test.want)
		}
	}
	if _, err := c.List(testContext(t), map[string]string{"a=b": "c"}); !errors.Is(err, llmsandbox.ErrInvalid) {
		t.Errorf("got %v, want ErrInvalid for a name that cannot be asked for", err)
	}
}

// TestFiles writes, reads, lists and removes files.
func TestFiles(t *testing.T) {
	sb := open(t, use(t), llmsandbox.Options{})
	content := bytes.Repeat([]byte("\x00\xff<b>"), 1<<18)
	if err := sb.WriteFileFrom(testContext(t), "sub/a b&c.bin", bytes.NewReader(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := sb.ReadFile(testContext(t), "sub/a b&c.bin"); err != nil || !bytes.Equal(got, content) {
		t.Errorf("got %d bytes, %v, want the %d that were written", len(got), err, len(content))
	}
	var copied bytes.Buffer
	if n, err := sb.ReadFileTo(testContext(t), "sub/a b&c.bin", &copied); err != nil || n != int64(len(content)) || !bytes.Equal(copied.Bytes(), content) {
		t.Errorf("got %d bytes, %v, want the %d that were written", n, err, len(content))
	}
	info, err := sb.Stat(testContext(t), "sub/a b&c.bin")
	if err != nil || info.Name != "a b&c.bin" || info.Size != int64(len(content)) || info.Mode != 0o600 || time.Since(info.ModTime) > time.Hour {
		t.Errorf("got %+v, %v, want the file that was written", info, err)
	}
	for name, data := range map[string][]byte{"empty": nil, "text": []byte("x")} {
		if err := sb.WriteFile(testContext(t), name, data); err != nil {
			t.Error(err)
		}
		if got, err := sb.ReadFile(testContext(t), name); err != nil || !bytes.Equal(got, data) {
			t.Errorf("got %q, %v, want %q", got, err, data)
		}
	}
	if err := errors.Join(sb.Mkdir(testContext(t), "sub/dir/below"), sb.Rename(testContext(t), "sub/a b&c.bin", "sub/b")); err != nil {
		t.Error(err)
	}
	if res, err := sb.Shell(testContext(t), "ln -s b sub/link", nil); err != nil || !res.OK() {
		t.Fatalf("got %+v, %v, want a link", res, err)
	}
	list, err := sb.ListDir(testContext(t), "sub")
	if err != nil || len(list) != 3 || list[0].Name != "b" || !list[0].Mode.IsRegular() || !list[1].IsDir() || list[2].Mode.Type() != fs.ModeSymlink || list[2].Link != "b" {
		t.Errorf("got %+v, %v, want b, dir and link", list, err)
	}
	if err := sb.Remove(testContext(t), "sub"); err != nil {
		t.Error(err)
	}
	if list, err := sb.ListDir(testContext(t), "."); err != nil || len(list) != 2 {
		t.Errorf("got %+v, %v, want empty and text", list, err)
	}
}

// TestFilesThatFail: what is wrong with files is what the library says.
func TestFilesThatFail(t *testing.T) {
	sb := open(t, use(t), llmsandbox.Options{})
	ctx := testContext(t)
	full, broken := errors.New("disk full"), errors.New("no more")
	if err := sb.WriteFile(ctx, "a", bytes.Repeat([]byte("x"), 1<<20)); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		want error
		call func() error
	}{
		"stat":      {fs.ErrNotExist, func() error { _, err := sb.Stat(ctx, "none"); return err }},
		"list":      {fs.ErrNotExist, func() error { _, err := sb.ListDir(ctx, "none"); return err }},
		"read":      {fs.ErrNotExist, func() error { _, err := sb.ReadFile(ctx, "none"); return err }},
		"remove":    {fs.ErrNotExist, func() error { return sb.Remove(ctx, "none") }},
		"rename":    {fs.ErrNotExist, func() error { return sb.Rename(ctx, "none", "b") }},
		"directory": {llmsandbox.ErrInvalid, func() error { _, err := sb.ReadFile(ctx, "."); return err }},
		"no path":   {llmsandbox.ErrInvalid, func() error { return sb.Mkdir(ctx, "") }},
		"forbidden": {fs.ErrPermission, func() error { return sb.WriteFile(ctx, "/usr/x", nil) }},
		"writer": {full, func() error {
			_, err := sb.ReadFileTo(ctx, "a", writer(func([]byte) (int, error) { return 0, full }))
			return err
		}},
		"reader": {broken, func() error {
			return sb.WriteFileFrom(ctx, "b", io.MultiReader(strings.NewReader("x"), reader(func([]byte) (int, error) { return 0, broken })), 0)
		}},
		"not at once": {broken, func() error {
			return sb.WriteFileFrom(ctx, "b", reader(func([]byte) (int, error) { return 0, broken }), 0)
		}},
	} {
		if err := test.call(); !errors.Is(err, test.want) || errors.Is(err, llmsandbox.ErrLost) {
			t.Errorf("%s: got %v, want %v, and nothing lost", name, err, test.want)
		}
	}
}

// TestErrors: what a server refuses has its status, code and reason, and is the library's error.
func TestErrors(t *testing.T) {
	address := serve(t, httpapi.Config{MaxSandboxes: 1})
	c := connect(t, address, key, client.Options{})
	open := func(c *client.Client, o llmsandbox.Options) error { _, err := c.Open(testContext(t), &o); return err }
	for name, test := range map[string]struct {
		err    error
		status int
		code   string
		detail string
		is     error
	}{
		"language": {open(c, llmsandbox.Options{Language: "cobol"}), 422, "unknown_language", "cobol", llmsandbox.ErrUnknownLanguage},
		"limit":    {open(c, llmsandbox.Options{Limits: llmsandbox.Limits{Memory: 1 << 50}}), 403, "not_allowed", "limits.memory_bytes", nil},
		"negative": {open(c, llmsandbox.Options{Limits: llmsandbox.Limits{PIDs: -2}}), 422, "invalid", "body.limits.pids", llmsandbox.ErrInvalid},
		"network":  {open(c, llmsandbox.Options{Network: llmsandbox.Network{Mode: llmsandbox.NetworkFull}}), 403, "not_allowed", "network", nil},
		"rules":    {open(c, llmsandbox.Options{Network: llmsandbox.Network{Allow: []string{"a.example"}}}), 422, "invalid", "", llmsandbox.ErrInvalid},
		"scope":    {open(connect(t, address, keyReads, client.Options{}), llmsandbox.Options{}), 403, "scope", "write", nil},
		"key":      {open(connect(t, address, "another", client.Options{}), llmsandbox.Options{}), 401, "unauthorized", "", nil},
		"no key":   {open(connect(t, address, "", client.Options{}), llmsandbox.Options{}), 401, "unauthorized", "", nil},
		"path":     {open(connect(t, address+"/elsewhere", key, client.Options{}), llmsandbox.Options{}), 404, "no_such_path", "openapi", nil},
	} {
		var got *client.Error
		if !errors.As(test.err, &got) || got.Status != test.status || got.Code != test.code || !strings.Contains(got.Detail, test.detail) {
			t.Errorf("%s: got %v, want %d %s about %q", name, test.err, test.status, test.code, test.detail)
		}
		if test.is != nil && !errors.Is(test.err, test.is) {
			t.Errorf("%s: got %v, want %v", name, test.err, test.is)
		}
		if errors.Is(test.err, llmsandbox.ErrLost) || errors.Is(test.err, llmsandbox.ErrNotFound) {
			t.Errorf("%s: got %v, want nothing lost or not found", name, test.err)
		}
	}
}

// TestUnreached: a server that is not there has begun nothing.
func TestUnreached(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	res, err := connect(t, "http://"+l.Addr().String(), key, client.Options{}).Run(testContext(t), "", nil)
	if err == nil || errors.Is(err, llmsandbox.ErrLost) || res.Status != llmsandbox.StatusSetupFailed {
		t.Errorf("got %+v, %v, want setup_failed and an error that is not ErrLost", res, err)
	}
}

// TestNew: addresses and keys that cannot be used are refused, and not shown.
func TestNew(t *testing.T) {
	for _, address := range []string{"", "host:1", "ftp://host", "https://", "https://user:secret@host", "https://host?key=secret", "https://host#secret", "https://%zz:secret@host", "unix:"} {
		if _, err := client.New(address, "k"); !errors.Is(err, llmsandbox.ErrInvalid) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: got %v, want ErrInvalid without the secret", address, err)
		}
	}
	for _, most := range []int64{0, 1, math.MaxInt64} {
		if _, err := client.NewWith("https://host", "k", &client.Options{MaxResult: most}); err != nil {
			t.Errorf("%d: got %v, want no error", most, err)
		}
	}
	for _, key := range []string{"secret\r\nX: y", "secret y", "secret\x00", "secreté"} {
		if _, err := client.New("https://host", key); !errors.Is(err, llmsandbox.ErrInvalid) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: got %v, want ErrInvalid without the key", key, err)
		}
	}
	if _, err := client.NewWith("https://host", "k", &client.Options{MaxResult: -1}); !errors.Is(err, llmsandbox.ErrInvalid) {
		t.Errorf("got %v, want ErrInvalid", err)
	}
	c, err := client.New("https://host:8321/below/", "secret")
	if err != nil {
		t.Fatal(err)
	}
	if got := c.String(); got != "https://host:8321/below/" {
		t.Errorf("got %q, want the address", got)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		if got := fmt.Sprintf(verb, c) + fmt.Sprintf(verb, *c); strings.Contains(got, "secret") || strings.Contains(got, "736563726574") {
			t.Errorf("%s: got %s, want no key in it", verb, got)
		}
	}
}

// TestOpen: options that the API has come to the server, which decides on them.
func TestOpen(t *testing.T) {
	t.Setenv("LLMSANDBOX_CONFIG_DIR", t.TempDir())
	if err := llmsandbox.CreateTemplate("of-bash", llmsandbox.Template{Language: "bash", Env: map[string]string{"A": "template"}, Limits: llmsandbox.Limits{Timeout: time.Minute, PIDs: 64}}); err != nil {
		t.Fatal(err)
	}
	known, err := llmsandbox.Templates()
	if err != nil {
		t.Fatal(err)
	}
	known[0].Path = ""
	network := llmsandbox.Network{Mode: llmsandbox.NetworkAllow, Allow: []string{"example.org:443"}}
	c := connect(t, serve(t, httpapi.Config{Sandbox: llmsandbox.Options{Network: network}}), key, client.Options{})
	if templates, err := c.Templates(testContext(t)); err != nil || fmt.Sprintf("%+v", templates) != fmt.Sprintf("%+v", known) {
		t.Errorf("got %+v, %v, want %+v", templates, err, known)
	}
	for name, test := range map[string]struct {
		opts         llmsandbox.Options
		code, stdout string
	}{
		"template": {llmsandbox.Options{Template: "of-bash"}, "echo $A", "template\n"},
		"imports":  {llmsandbox.Options{Language: "python", Imports: []string{"json.tool"}}, "import sys; print('json.tool' in sys.modules)", "True\n"},
		"workdir":  {llmsandbox.Options{Language: "bash", Workdir: "/srv/project", BestEffort: true}, "pwd", "/srv/project\n"},
		"secrets": {
			llmsandbox.Options{Language: "bash", Network: network, Secrets: []llmsandbox.Secret{{Name: "TOKEN", Value: "value-of-it", Hosts: network.Allow, Body: true}}},
			"[[ -n $TOKEN && $TOKEN != *value* ]] && echo placeholder", "placeholder\n",
		},
		"artifacts": {llmsandbox.Options{Language: "bash", Artifacts: llmsandbox.ArtifactOptions{Off: true}}, "mkdir artifacts; echo >artifacts/a.txt", ""},
	} {
		sb, err := c.Open(testContext(t), &test.opts)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if res, err := sb.Run(testContext(t), test.code, nil); err != nil || !res.OK() || res.Stdout != test.stdout || len(res.Artifacts) > 0 {
			t.Errorf("%s: got %+v, %v, want %q", name, res, err, test.stdout)
		}
		if err := sb.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, opts := range map[string]llmsandbox.Options{
		"user": {User: "root"}, "sudo": {Sudo: true}, "writable_root": {WritableRoot: true}, // which the operator does not have
	} {
		sb, err := c.Open(testContext(t), &opts)
		var refused *client.Error
		if !errors.As(err, &refused) || refused.Code != "not_allowed" || !strings.Contains(refused.Detail, name) {
			t.Errorf("%s: got %v, %v, want it not to be allowed", name, sb, err)
		}
	}
}

// TestSignURL: a program without a key reads and writes by a signed URL.
func TestSignURL(t *testing.T) {
	c := use(t)
	sb := open(t, c, llmsandbox.Options{})
	do := func(method, address, content string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(testContext(t), method, address, strings.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		transport := &http.Transport{DisableKeepAlives: true}
		res, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(text)
	}
	for _, method := range []string{http.MethodPut, http.MethodGet} {
		address, err := sb.SignURL(testContext(t), method, "a é&.txt", time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if status, text := do(method, address, "content"); status/100 != 2 || method == http.MethodGet && text != "content" {
			t.Errorf("%s: got %d %q, want the content", method, status, text)
		}
	}
	for method, lifetime := range map[string]time.Duration{http.MethodGet: 48 * time.Hour, http.MethodDelete: time.Minute} {
		if address, err := sb.SignURL(testContext(t), method, "a", lifetime); !errors.Is(err, llmsandbox.ErrInvalid) {
			t.Errorf("%s: got %s, %v, want ErrInvalid", method, address, err)
		}
	}
	for _, answer := range []string{`{}`, `{"url": "https://evil.example/"}`, `{"url": "%zz"}`, `{"url": "/v1/signed"}`} {
		_, hostile := hostileServer(t, answers("application/json", answer, true))
		if address, err := hostile.SignURL(testContext(t), http.MethodGet, "a", time.Minute); !errors.Is(err, llmsandbox.ErrLost) {
			t.Errorf("%s: got %s, %v, want that it cannot be used", answer, address, err)
		}
	}
}

// TestFacts: what a server tells of itself and of code.
func TestFacts(t *testing.T) {
	c := use(t)
	languages, err := c.Languages(testContext(t))
	if at := slices.IndexFunc(languages, func(l client.Language) bool { return l.Name == "python" }); err != nil || at < 0 || languages[at].Title != "Python" || !slices.Contains(languages[at].Extensions, ".py") {
		t.Errorf("got %+v, %v, want Python among them", languages, err)
	}
	environments, err := c.Environments(testContext(t))
	if at := slices.IndexFunc(environments, func(e llmsandbox.EnvironmentInfo) bool { return e.Name == llmsandbox.DataScience }); err != nil || at < 0 || environments[at].Language != "python" || len(environments[at].Packages) == 0 {
		t.Errorf("got %+v, %v, want %s among them", environments, err, llmsandbox.DataScience)
	}
	report, err := c.Check(testContext(t), "production", security.Program{Language: "python", Code: []byte("import subprocess")})
	if err != nil || !report.Blocked || len(report.Findings) == 0 || report.Policy != "production" {
		t.Errorf("got %+v, %v, want it blocked", report, err)
	}
	if _, err := c.Check(testContext(t), "none", security.Program{}); !errors.Is(err, llmsandbox.ErrInvalid) {
		t.Errorf("got %v, want ErrInvalid", err)
	}
	sb := open(t, c, llmsandbox.Options{})
	capabilities, err := sb.Capabilities(testContext(t))
	if known, ok := capabilities.Get("seccomp"); err != nil || capabilities.Backend != "local" || !ok || known.Name == "" {
		t.Errorf("got %+v, %v, want what is enforced", capabilities, err)
	}
	if _, err := sb.Network(testContext(t)); err != nil {
		t.Error(err)
	}
	if err := sb.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := sb.Usage(testContext(t)); !errors.Is(err, llmsandbox.ErrClosed) {
		t.Errorf("got %v, want ErrClosed", err)
	}
}

// pauseAndResume: what is asked of a paused sandbox is refused, as the library's refuse it, and it goes on as it was.
func pauseAndResume(t *testing.T, c *client.Client, sb *client.Sandbox) {
	t.Helper()
	ctx := testContext(t)
	caps, err := sb.Capabilities(ctx)
	if memory, _ := caps.Get("memory"); err != nil || !memory.Enforced {
		if err != nil || os.Getenv("LLMSANDBOX_REQUIRE") == "1" {
			t.Fatalf("sandboxes cannot be paused here: %+v, %v", caps, err)
		}
		return
	}
	paused := func() bool {
		t.Helper()
		list, err := c.List(ctx, nil)
		if err != nil || len(list) != 1 {
			t.Fatalf("got %+v, %v, want the sandbox", list, err)
		}
		return list[0].Paused
	}
	for range 2 {
		if err := sb.Pause(ctx); err != nil {
			t.Fatal(err)
		}
		if err := sb.Pause(ctx); !errors.Is(err, llmsandbox.ErrPaused) {
			t.Errorf("pause again: got %v, want ErrPaused", err)
		}
		if err := sb.WriteFile(ctx, "a", nil); !errors.Is(err, llmsandbox.ErrPaused) {
			t.Errorf("write: got %v, want ErrPaused", err)
		}
		if !paused() {
			t.Error("it is not listed as paused")
		}
		for range 2 {
			if err := sb.Resume(ctx); err != nil {
				t.Fatal(err)
			}
		}
		if err := sb.WriteFile(ctx, "a", nil); err != nil || paused() {
			t.Errorf("after it was resumed: write: %v, want no error; listed as paused: %v, want false", err, paused())
		}
	}
}
