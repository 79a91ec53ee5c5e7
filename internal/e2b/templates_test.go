package e2b

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/llmsandbox/llmsandbox/httpapi/database"
	"github.com/llmsandbox/llmsandbox/internal/service"
)

// TestTemplatesNeedRoot: without a root that can be written to, no sandbox would begin with a template, so none is built. Without images, none could be kept.
func TestTemplatesNeedRoot(t *testing.T) {
	for _, writable := range []bool{false, true} { // the second has no images
		h := serveWith(t, func(core *service.Config, _ *Config) { core.Sandbox.WritableRoot = writable })
		if status, text, _ := h.ask(testKey, http.MethodPost, "/v3/templates", `{"name": "x"}`); status != http.StatusBadRequest || !strings.Contains(text, "--writable-root and --max-images") {
			t.Errorf("got %d %s", status, text)
		}
	}
}

func TestNewBuild(t *testing.T) {
	steps := func(list string) string { return `{"fromTemplate": "base", "steps": [` + list + `]}` }
	for body, says := range map[string]string{
		`{"steps": []}`: "give one of them", `{"fromImage": "a", "fromTemplate": "b"}`: "give one of them",
		`{"fromImage": "a", "fromImageRegistry": {"type": "registry"}}`: "fromImageRegistry", `{"fromTemplate": "a", "startCmd": "a\u0000"}`: "NUL",
		steps(strings.Repeat(`{"type": "USER", "args": ["user"]},`, maxBuildSteps) + `{"type": "USER", "args": ["user"]}`): "more than",
		steps(`{"type": "FROM", "args": ["a"]}`):                                        `step 1, "FROM": there is no such step`,
		steps(`{"type": "RUN"}`):                                                        "arguments",
		steps(`{"type": "RUN", "args": ["a", "b", "c"]}`):                               "arguments",
		steps(`{"type": "RUN", "args": ["a\u0000"]}`):                                   "arguments",
		steps(`{"type": "ENV", "args": ["A", "1", "B"]}`):                               "pairs",
		steps(`{"type": "ENV", "args": ["A=", "1"]}`):                                   "pairs",
		steps(`{"type": "USER", "args": [""]}`):                                         noOwner,
		steps(`{"type": "USER", "args": ["nobody"]}`):                                   noOwner,
		steps(`{"type": "WORKDIR", "args": [""]}`):                                      "path",
		steps(`{"type": "COPY", "args": ["../a", "b"]}`):                                "relative path",
		steps(`{"type": "COPY", "args": ["a/../..", "b"]}`):                             "relative path",
		steps(`{"type": "COPY", "args": ["/a", "b"]}`):                                  "relative path",
		steps(`{"type": "COPY", "args": ["a", ""]}`):                                    "relative path",
		steps(`{"type": "COPY", "args": ["a", "b", "", "x"]}`):                          "mode",
		steps(`{"type": "COPY", "args": ["a", "b", "user:root"]}`):                      noOwner,
		steps(`{"type": "COPY", "args": ["a", "b", "root:root", "0755"]}`):              "",
		steps(`{"type": "ENV", "args": ["A", "1="]}, {"type": "RUN", "args": ["a"]}`):   "",
		`{"fromImage": "e2bdev/base:latest", "fromImageRegistry": null, "force": true}`: "",
	} {
		var in newBuild
		if err := json.Unmarshal([]byte(body), &in); err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		if err := in.check(); (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%.200s: got %v, want %q", body, err, says)
		}
	}
}

func TestTaggedNames(t *testing.T) {
	for _, c := range []struct {
		name  string
		tags  []string
		names []string // nil: it is refused
	}{
		{"a", nil, []string{"a"}}, {"a:default", nil, []string{"a"}}, {"a:v1", nil, []string{"a:v1"}}, {"a", []string{"v2", "v1", "v2"}, []string{"a:v1", "a:v2"}},
		{"a:v1", []string{"default"}, []string{"a", "a:v1"}},
		{"", nil, nil}, {"base", nil, nil}, {"code-interpreter-v1:x", nil, nil}, {"a:", nil, nil}, {"a", []string{":x"}, nil}, {"a", []string{"x:"}, nil}, {"team/a", nil, nil}, {"../a", nil, nil},
		{"a", strings.Fields(strings.Repeat("x ", 20)), []string{"a:x"}}, {"a", strings.Fields("1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17"), nil},
	} {
		if _, names, _, err := taggedNames(c.name, c.tags); (err == nil) != (c.names != nil) || err == nil && !slices.Equal(names, c.names) {
			t.Errorf("%q %q: got %q, %v, want %q", c.name, c.tags, names, err, c.names)
		}
	}
}

// TestBuildLog: it is bounded, and says so.
func TestBuildLog(t *testing.T) {
	var bs builds
	b := &build{}
	l := &lineNoter{note: func(level, line string) { bs.note(b, level, "1", line) }, level: "info"}
	l.add([]byte("one\r\ntwo\n\nthr"))
	l.add([]byte("ee"))
	l.rest()
	var lines []string
	for _, e := range b.log {
		lines = append(lines, e.Message)
	}
	if want := []string{"one", "two", "", "three"}; !slices.Equal(lines, want) {
		t.Errorf("got %q, want %q", lines, want)
	}
	for range 4 * maxLog / maxLine {
		l.add(bytes.Repeat([]byte("\xff"), maxLine+1))
	}
	if last := b.log[len(b.log)-1]; b.logged > maxLog+maxLine+200 || !strings.Contains(last.Message, "too long") || last.Level != "warn" {
		t.Errorf("it has %d bytes and ends with %+v", b.logged, last)
	}
}

// A templateHost is a host whose project can build templates.
type templateHost struct {
	*host

	mu   sync.Mutex
	done []string // what was noted: operations with status and whether a sandbox was
}

func serveTemplates(t *testing.T, change func(*service.Config)) *templateHost {
	t.Helper()
	t.Setenv("LLMSANDBOX_CACHE_DIR", t.TempDir())
	h := &templateHost{}
	h.host = serveWith(t, func(core *service.Config, cfg *Config) {
		core.Sandbox.WritableRoot, core.MaxImages, core.ImageDir = true, 6, t.TempDir()
		cfg.Scheme = "http"
		cfg.Begin = func(_ context.Context, _ database.Caller, operation, _ string, _ bool) (func(int, string), error) {
			return func(status int, sandbox string) {
				h.mu.Lock()
				defer h.mu.Unlock()
				h.done = append(h.done, fmt.Sprint(operation, " ", status, " ", sandbox != ""))
			}, nil
		}
		change(core)
	})
	return h
}

// status is the state of a build, with its log from an entry on.
func (h *templateHost) status(template, id string, offset int) (b struct {
	Status string     `json:"status"`
	Log    []logEntry `json:"logEntries"`
	Reason *reason    `json:"reason"`
}) {
	h.t.Helper()
	status, text, _ := h.ask(readKey, http.MethodGet, fmt.Sprintf("/templates/%s/builds/%s/status?logsOffset=%d", template, id, offset), "")
	if err := json.Unmarshal([]byte(text), &b); status != http.StatusOK || err != nil || strings.Contains(text, "null") {
		h.t.Fatalf("status: %d %s, %v", status, text, err)
	}
	return b
}

// request asks for a build, and returns its id.
func (h *templateHost) request(body string) string {
	h.t.Helper()
	var made struct {
		Template string `json:"templateID"`
		Build    string `json:"buildID"`
	}
	status, text, _ := h.ask(testKey, http.MethodPost, "/v3/templates", body)
	if err := json.Unmarshal([]byte(text), &made); status != http.StatusAccepted || err != nil || len(made.Build) != 36 {
		h.t.Fatalf("%s: %d %s, %v", body, status, text, err)
	}
	return made.Build
}

// upload asks where a file goes and sends it there, without a key.
func (h *templateHost) upload(template, hash string, content []byte) {
	h.t.Helper()
	var to struct {
		Present bool
		URL     string
	}
	status, text, _ := h.ask(testKey, http.MethodGet, "/templates/"+template+"/files/"+hash, "")
	if err := json.Unmarshal([]byte(text), &to); status != http.StatusCreated || err != nil || to.Present || !strings.HasPrefix(to.URL, h.url) {
		h.t.Fatalf("upload: %d %s, %v", status, text, err)
	}
	if status := h.put(to.URL, bytes.NewReader(content)); status != http.StatusOK {
		h.t.Fatalf("upload: %d", status)
	}
	if _, text, _ := h.ask(testKey, http.MethodGet, "/templates/"+template+"/files/"+hash, ""); !strings.Contains(text, `"present":true`) {
		h.t.Errorf("it was uploaded, and %s", text)
	}
	for from, want := range map[string]int{"upload=": http.StatusForbidden, "files/" + hash: http.StatusForbidden} {
		if from == "upload=" {
			from = to.URL[strings.Index(to.URL, from):]
		}
		if status := h.put(strings.Replace(to.URL, from, "x", 1), strings.NewReader("x")); status == http.StatusOK {
			h.t.Errorf("without %s: %d, want %d", from, status, want)
		}
	}
	if status := h.put(to.URL, io.MultiReader(strings.NewReader("x"))); status != http.StatusLengthRequired {
		h.t.Errorf("without a length: %d", status)
	}
}

func (h *templateHost) put(to string, content io.Reader) int {
	h.t.Helper()
	r, err := http.NewRequestWithContext(testContext(h.t), http.MethodPut, to, content)
	if err != nil {
		h.t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		h.t.Fatal(err)
	}
	res.Body.Close()
	return res.StatusCode
}

// build builds a template to its end, and returns why it has failed and the messages of its log.
func (h *templateHost) build(template, id, body string) (why *reason, log []string) {
	h.t.Helper()
	if status, text, _ := h.ask(testKey, http.MethodPost, "/v2/templates/"+template+"/builds/"+id, body); status != http.StatusAccepted || text != "" {
		h.t.Fatalf("%s: %d %s", body, status, text)
	}
	for {
		b := h.status(template, id, len(log))
		for _, e := range b.Log {
			log = append(log, e.Message)
		}
		if b.Status != buildRuns && len(b.Log) == 0 {
			return b.Reason, log
		}
	}
}

const someHash = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

// archive is a tar archive of files, that was compressed.
func archive(t *testing.T, files ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, name := range files {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o640, Size: int64(len(name))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestTemplates: a template is what its steps say, for its project.
func TestTemplates(t *testing.T) {
	h := serveTemplates(t, func(*service.Config) {})
	id := h.request(`{"name": "mine:v1", "tags": ["v2"], "memoryMB": 300, "cpuCount": 1}`)
	if b := h.status("mine", id, 7); b.Status != buildWaits || len(b.Log) > 0 {
		t.Errorf("it is %+v", b)
	}
	// What leaves the directory it is unpacked in is not unpacked.
	h.upload("mine", someHash, archive(t, "d/a.txt", "d/b.txt", "/outside"))
	why, log := h.build("mine", id, `{"fromImage": "e2bdev/base", "startCmd": "echo started >>/srv/started; sleep 1000", "readyCmd": "test -s /srv/started", "steps": [
		{"type": "ENV", "args": ["A", "1"]}, {"type": "WORKDIR", "args": ["/srv/w"]}, {"type": "COPY", "args": ["d/*.txt", "to", "user:user", "0600"], "filesHash": "`+someHash+`"},
		{"type": "RUN", "args": ["echo $A $PWD; cat to/a.txt; test ! -e /outside && test ! -e /tmp/outside"]}]}`)
	if why != nil || !slices.Contains(log, "1 /srv/w") || !slices.Contains(log, "d/a.txt") {
		t.Fatalf("it failed: %+v: %q", why, log)
	}
	if left, err := h.service.List(testContext(t), testProject); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
	h.mu.Lock()
	if got := h.done[len(h.done)-1]; !slices.Contains(h.done, "build-template 202 false") || !slices.Contains(h.done, "built-template 201 true") {
		t.Errorf("noted was %q, at last %q", h.done, got)
	}
	h.mu.Unlock()
	made := h.make(`{"templateID": "mine:v2", "envVars": {"B": "2"}}`)
	sb, err := h.service.Get(testContext(t), testProject, innerID(made.ID))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"/srv/w/to/b.txt": "d/b.txt", "/srv/started": "started\n"} {
		if text, err := sb.ReadFile(testContext(t), path); err != nil || string(text) != want {
			t.Errorf("%s: %q, %v, want %q", path, text, err, want)
		}
	}
	if i, err := h.service.Find(testContext(t), testProject, innerID(made.ID)); err != nil || i.Limits.Memory != 300<<20 || i.Limits.CPUs != 1 {
		t.Errorf("it has %+v, %v", i.Limits, err)
	}

	if status, text, _ := h.ask(testKey, http.MethodPost, "/sandboxes/"+made.ID+"/snapshots", `{"name": "kept"}`); status != http.StatusCreated {
		t.Errorf("snapshot: %d %s", status, text)
	}
	for _, c := range []struct {
		key, method, path, body string
		want                    int
	}{
		{testKey, http.MethodPost, "/v3/templates", `{"name": "kept"}`, http.StatusConflict},
		{readKey, http.MethodPost, "/v3/templates", `{"name": "x"}`, http.StatusForbidden},
		{testKey, http.MethodPost, "/v3/templates", `{"name": "base"}`, http.StatusBadRequest},
		{testKey, http.MethodPost, "/v3/templates", `{"name": "x", "minFreeDiskMb": 1}`, http.StatusBadRequest},
		{testKey, http.MethodPost, "/v3/templates", `{"name": "x", "cpuCount": -1}`, http.StatusBadRequest},
		{testKey, http.MethodPost, "/v2/templates/mine/builds/" + id, `{"fromTemplate": "base"}`, http.StatusBadRequest},
		{testKey, http.MethodPost, "/v2/templates/other/builds/" + id, `{"fromTemplate": "base"}`, http.StatusNotFound},
		{otherKey, http.MethodPost, "/v2/templates/mine/builds/" + id, `{"fromTemplate": "base"}`, http.StatusNotFound},
		{otherKey, http.MethodGet, "/templates/mine/builds/" + id + "/status", ``, http.StatusNotFound},
		{testKey, http.MethodGet, "/templates/mine/builds/" + id + "/status?logsOffset=-1", ``, http.StatusBadRequest},
		{testKey, http.MethodGet, "/templates/mine/builds/" + id + "/status?level=error", ``, http.StatusBadRequest},
		{testKey, http.MethodGet, "/templates/mine/files/" + someHash, ``, http.StatusNotFound}, // no build waits any more
		{testKey, http.MethodGet, "/templates/mine/files/x", ``, http.StatusBadRequest},
		{readKey, http.MethodGet, "/templates/mine/files/" + someHash, ``, http.StatusForbidden},
		{otherKey, http.MethodPost, "/v2/sandboxes", `{"templateID": "mine:v1"}`, http.StatusNotFound},
		{readKey, http.MethodGet, "/templates/aliases/mine", ``, http.StatusOK},
		{readKey, http.MethodGet, "/templates/aliases/mine:v1", ``, http.StatusOK},
		{readKey, http.MethodGet, "/templates/aliases/mine:v3", ``, http.StatusNotFound},
		{readKey, http.MethodGet, "/templates/aliases/base", ``, http.StatusOK},
		{otherKey, http.MethodGet, "/templates/aliases/mine", ``, http.StatusNotFound},
		{readKey, http.MethodGet, "/templates/aliases/..%2Fmine", ``, http.StatusNotFound},
		{readKey, http.MethodGet, "/templates/mine/other", ``, http.StatusNotImplemented},
		{otherKey, http.MethodGet, "/templates/mine/tags", ``, http.StatusNotFound},
		{otherKey, http.MethodPost, "/templates/tags", `{"target": "mine:v1", "tags": ["v3"]}`, http.StatusNotFound},
		{readKey, http.MethodPost, "/templates/tags", `{"target": "mine:v1", "tags": ["v3"]}`, http.StatusForbidden},
		{testKey, http.MethodPost, "/templates/tags", `{"target": "mine:v1", "tags": []}`, http.StatusBadRequest},
		{testKey, http.MethodPost, "/templates/tags", `{"target": "mine:v1", "tags": [":x"]}`, http.StatusBadRequest},
		{testKey, http.MethodPost, "/templates/tags", `{"target": "mine:v1", "tags": ["v3", "v1"]}`, http.StatusCreated},
		{readKey, http.MethodGet, "/templates/aliases/mine:v3", ``, http.StatusOK},
		{otherKey, http.MethodDelete, "/templates/tags", `{"name": "mine", "tags": ["v3"]}`, http.StatusNotFound},
		{testKey, http.MethodDelete, "/templates/tags", `{"name": "mine", "tags": ["v2"]}`, http.StatusConflict}, // a sandbox has it
		{testKey, http.MethodDelete, "/templates/tags", `{"name": "mine", "tags": ["v3"]}`, http.StatusNoContent},
		{testKey, http.MethodDelete, "/templates/tags", `{"name": "mine", "tags": ["v3"]}`, http.StatusNotFound},
		{testKey, http.MethodDelete, "/templates/mine:v1", ``, http.StatusNoContent},
	} {
		if status, text, _ := h.ask(c.key, c.method, c.path, c.body); status != c.want || strings.Contains(text, "image.tar") {
			t.Errorf("%s %s %s: %d %s, want %d", c.method, c.path, c.body, status, text, c.want)
		}
	}
	if _, text, _ := h.ask(readKey, http.MethodGet, "/templates/mine/tags", ""); !strings.HasPrefix(text, `[{"tag":"v2","buildID":"`+id+`"`) {
		t.Errorf("the tags are %s", text)
	}
}

// TestBuildsFail: a build that fails says why and at which step, and leaves nothing.
func TestBuildsFail(t *testing.T) {
	h := serveTemplates(t, func(core *service.Config) { core.MaxSandboxes = 1 })
	for _, c := range []struct{ body, step, says string }{
		{`{"fromTemplate": "none"}`, baseStep, "template 'none' not found"},
		{`{"fromImage": "python:3"}`, baseStep, "not allowed"},
		{`{"fromImage": "/etc/passwd"}`, baseStep, "not allowed"},
		{`{"fromTemplate": "base", "steps": [{"type": "RUN", "args": ["true"]}, {"type": "RUN", "args": ["exit 3"]}]}`, "2", "failed to run command 'exit 3': command failed: "},
		{`{"fromTemplate": "base", "steps": [{"type": "RUN", "args": ["true", "none-such"]}]}`, "1", "unauthenticated: invalid username: 'none-such'"},
		{`{"fromTemplate": "base", "steps": [{"type": "COPY", "args": ["a", "b"], "filesHash": "` + someHash + `"}]}`, "1", "it failed in the sandbox: "},
		{`{"fromTemplate": "base", "startCmd": "` + strings.Repeat("x", maxSetup) + `"}`, finalizeStep, "more than"},
	} {
		id := h.request(`{"name": "bad"}`)
		h.upload("bad", someHash, archive(t, "../../a"))
		why, _ := h.build("bad", id, c.body)
		if why == nil || why.Step != c.step || !strings.Contains(why.Message, c.says) {
			t.Errorf("%.200s: %+v, want step %s and %q", c.body, why, c.step, c.says)
		}
	}
	id := h.request(`{"name": "bad"}`)
	if status, text, _ := h.ask(testKey, http.MethodPost, "/v2/templates/bad/builds/"+id, `{"fromTemplate": "base", "steps": [{"type": "COPY", "args": ["a", "b"], "filesHash": "x"}]}`); status != http.StatusBadRequest {
		t.Errorf("without files: %d %s", status, text)
	}
	h.make(`{}`)
	if why, _ := h.build("bad", id, `{"fromTemplate": "base"}`); why == nil || why.Step != baseStep || !strings.Contains(why.Message, "quota") {
		t.Errorf("beside the sandboxes that the project may have: %+v", why)
	}
	for range maxBuilds {
		h.request(`{"name": "bad"}`) // which the server ends with itself
	}
	if status, text, _ := h.ask(testKey, http.MethodPost, "/v3/templates", `{"name": "bad"}`); status != http.StatusTooManyRequests {
		t.Errorf("one more: %d %s", status, text)
	}
	if all, err := h.service.Images(testProject); err != nil || len(all) > 0 {
		t.Errorf("there are %v, %v", all, err)
	}
	h.server.builds.mu.Lock()
	defer h.server.builds.mu.Unlock()
	for _, b := range h.server.builds.all {
		if b.ended() && len(b.uploads.files) > 0 {
			t.Errorf("a build that has ended has %v", b.uploads.files)
		}
	}
}

// TestBuildEndsWithServer: it does not go on, and leaves no sandbox.
func TestBuildEndsWithServer(t *testing.T) {
	h := serveTemplates(t, func(*service.Config) {})
	id := h.request(`{"name": "slow"}`)
	if status, text, _ := h.ask(testKey, http.MethodPost, "/v2/templates/slow/builds/"+id, `{"fromTemplate": "base", "steps": [{"type": "RUN", "args": ["echo begun; sleep 1000"]}]}`); status != http.StatusAccepted {
		t.Fatalf("%d %s", status, text)
	}
	for !slices.ContainsFunc(h.status("slow", id, 0).Log, func(e logEntry) bool { return e.Message == "begun" }) {
		continue
	}
	h.server.Close()
	if b := h.status("slow", id, 0); b.Status != buildFailed || !strings.Contains(b.Reason.Message, "stopping") {
		t.Errorf("it is %+v", b)
	}
	if left, err := h.service.List(testContext(t), testProject); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

// TestBuildUploads: what builds upload is bounded, in bytes of the project and in files of a template.
func TestBuildUploads(t *testing.T) {
	h := serveTemplates(t, func(*service.Config) {})
	h.request(`{"name": "one"}`)
	h.request(`{"name": "two"}`)
	send := func(b *build, hash string, size int64) int {
		r := httptest.NewRequestWithContext(testContext(t), http.MethodPut, "/?upload="+b.uploads.secret, strings.NewReader("x"))
		r.SetPathValue("template", b.template)
		r.SetPathValue("hash", hash)
		r.ContentLength = size
		return h.server.refusalOf(r.Context(), cmp.Or(h.server.takeUpload(r), error(refusal(http.StatusOK, "")))).Status
	}
	one, two := h.server.builds.all[0], h.server.builds.all[1]
	if status := send(one, someHash, maxUploaded); status != http.StatusOK {
		t.Errorf("the most: %d", status)
	}
	if status := send(two, someHash, 1); status != http.StatusRequestEntityTooLarge {
		t.Errorf("more than the most: %d", status)
	}
	if status := send(two, "x", 0); status != http.StatusForbidden {
		t.Errorf("no hash: %d", status)
	}
	for n := range maxFiles + 1 {
		want := http.StatusOK
		if n == maxFiles {
			want = http.StatusRequestEntityTooLarge
		}
		if status := send(two, fmt.Sprintf("%064x", n), 0); status != want {
			t.Errorf("file %d: %d, want %d", n, status, want)
		}
	}
	if status := send(one, someHash, 0); status != http.StatusOK || one.uploads.count != 1 || one.uploads.size != maxUploaded {
		t.Errorf("again: %d, and there are %d files of %d bytes", status, one.uploads.count, one.uploads.size)
	}
}
