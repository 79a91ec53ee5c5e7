package httpapi

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend/local"
	"github.com/llmsandbox/llmsandbox/internal/apitypes"
)

// archiveOf is a tar archive of one file.
func archiveOf(t *testing.T, name, content string) string {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content))}); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// entries are the names in a tar archive, and the files' contents.
func entries(t *testing.T, text string) (all []string) {
	t.Helper()
	for r := tar.NewReader(strings.NewReader(text)); ; {
		h, err := r.Next()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatalf("%v in %q", err, text)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, h.Name+"="+string(content))
	}
}

// refused wants a problem with that status and code, whose text has neither what the volume is called on the backend nor a path of the host.
func (c *client) refused(status int, code, method, path, body string, headers ...string) {
	c.t.Helper()
	var p apitypes.Problem
	c.want(status, &p, method, path, body, headers...)
	if p.Code != code || strings.Contains(p.Detail, "/state") || strings.Contains(p.Detail, "-kept") {
		c.t.Errorf("%s %s: got %+v, want the code %s and none of the server's own names", method, path, p, code)
	}
}

func TestVolumes(t *testing.T) {
	var mu sync.Mutex
	var events []AuditEvent
	c := serve(t, Config{MaxVolumes: 2, Audit: func(_ context.Context, more []AuditEvent) error {
		mu.Lock()
		defer mu.Unlock()
		events = append(events, more...)
		return nil
	}})
	b := c.as(keyB)
	var made apitypes.Volume
	c.want(http.StatusCreated, &made, http.MethodPost, "/v1/volumes", `{"name": "kept", "labels": {"of": "a"}}`)
	if made.Name != "kept" || made.Labels["of"] != "a" || len(made.Labels) != 1 || made.Created.IsZero() {
		t.Errorf("got %+v, want the volume with the labels of the request", made)
	}
	// Two projects have volumes of one name, and neither sees the other's.
	b.want(http.StatusCreated, nil, http.MethodPost, "/v1/volumes", `{"name": "kept"}`)
	b.want(http.StatusCreated, nil, http.MethodPost, "/v1/volumes", `{"name": "other"}`)
	list := func(c *client) (names []string) {
		t.Helper()
		var l struct{ Volumes []apitypes.Volume }
		c.want(http.StatusOK, &l, http.MethodGet, "/v1/volumes", "")
		for _, v := range l.Volumes {
			names = append(names, v.Name)
		}
		return names
	}
	if a, b := list(c), list(b); !slices.Equal(a, []string{"kept"}) || !slices.Equal(b, []string{"kept", "other"}) {
		t.Errorf("got %v and %v, want each project's own", a, b)
	}

	// Files stay, in sandboxes at the same time and one after the other.
	const mounted = `"volumes": [{"name": "kept", "path": "/sandbox/kept"}]`
	first, sb := c.create(`{"language": "bash", ` + mounted + `}`)
	if len(sb.Volumes) != 1 || sb.Volumes[0] != (apitypes.VolumeMount{Name: "kept", Target: "/sandbox/kept"}) {
		t.Errorf("the sandbox has %+v, want the volume", sb.Volumes)
	}
	run := func(c *client, path, body, want string) {
		t.Helper()
		var res result
		c.want(http.StatusOK, &res, http.MethodPost, path, body)
		if res.Stdout != want {
			t.Errorf("%s: got %q %q, want %q", path, res.Stdout, res.Stderr, want)
		}
	}
	run(c, first+"/run", `{"code": "echo one >kept/file; ln -s /etc kept/link; cat kept/file"}`, "one\n")
	second, _ := c.create(`{"language": "bash", "volumes": [{"name": "kept", "path": "/kept", "read_only": true}]}`)
	run(c, second+"/run", `{"code": "cat /kept/file; (echo x >/kept/file) 2>/dev/null || echo refused"}`, "one\nrefused\n")
	run(c, "/v1/run", `{"language": "bash", "code": "cat kept/file; echo two >kept/two", `+mounted+`}`, "one\n")
	run(b, "/v1/run", `{"language": "bash", "code": "ls -A kept", `+mounted+`}`, "")
	for _, r := range []struct{ path, body string }{
		{"/v1/sandboxes", `{"volumes": [{"name": "other", "path": "/kept"}]}`}, {"/v1/run", `{"code": "1", "language": "bash", "volumes": [{"name": "other", "path": "/kept"}]}`},
	} {
		c.refused(http.StatusNotFound, "volume_not_found", http.MethodPost, r.path, r.body)
	}
	for _, body := range []string{`{"volumes": [{"name": "kept", "path": "/etc"}]}`, `{"volumes": [{"name": "../kept", "path": "/kept"}]}`, `{"volumes": [{"name": "kept", "path": "kept"}]}`} {
		c.refused(http.StatusUnprocessableEntity, "invalid", http.MethodPost, "/v1/sandboxes", body)
	}

	// They go in and out without a sandbox.
	const archive = "/v1/volumes/kept/archive?path=/"
	c.want(http.StatusOK, nil, http.MethodPut, archive+"in", archiveOf(t, "three", "3"), "Content-Type: "+tarType)
	res, text := c.do(http.MethodGet, archive, "")
	got := entries(t, text)
	slices.Sort(got)
	if want := []string{"kept/=", "kept/file=one\n", "kept/in/=", "kept/in/three=3", "kept/two=two\n"}; res.StatusCode != http.StatusOK || !slices.Equal(got, want) || res.Trailer.Get(apitypes.SkippedTrailer) != "1" {
		t.Errorf("got %d %q, %v, want %q and that the link was left out", res.StatusCode, got, res.Trailer, want)
	}
	if res, text := c.as(keyAReads).do(http.MethodGet, archive+"file&name=x", ""); res.StatusCode != http.StatusOK || !slices.Equal(entries(t, text), []string{"x=one\n"}) {
		t.Errorf("got %d %q, want one file by the name that was asked for", res.StatusCode, text)
	}
	c.refused(http.StatusNotFound, "file_not_found", http.MethodGet, archive+"none", "")
	c.refused(http.StatusUnprocessableEntity, "unsafe_path", http.MethodGet, archive+"../x", "")
	c.refused(http.StatusUnprocessableEntity, "unsafe_path", http.MethodPut, archive+"../x", archiveOf(t, "x", "x"), "Content-Type: "+tarType)
	c.refused(http.StatusNotFound, "volume_not_found", http.MethodGet, "/v1/volumes/other/archive?path=/", "")
	c.refused(http.StatusNotFound, "volume_not_found", http.MethodPut, "/v1/volumes/other/archive?path=/", archiveOf(t, "x", "x"), "Content-Type: "+tarType)
	c.refused(http.StatusNotFound, "volume_not_found", http.MethodGet, "/v1/volumes/..%2Fkept/archive?path=/", "")

	// What a project may not have, or another's is.
	c.refused(http.StatusConflict, "volume_exists", http.MethodPost, "/v1/volumes", `{"name": "kept"}`)
	for _, body := range []string{`{"name": ""}`, `{"name": "A"}`, `{"name": "../x"}`, `{"name": "` + strings.Repeat("a", 47) + `"}`, `{"name": "x", "labels": {"llmsandbox.project": "b"}}`, `{"name": "x", "size_bytes": -1}`} {
		c.refused(http.StatusUnprocessableEntity, "invalid", http.MethodPost, "/v1/volumes", body)
	}
	c.refused(http.StatusUnprocessableEntity, "not_enforced", http.MethodPost, "/v1/volumes", `{"name": "x", "size_bytes": 1000000}`)
	c.refused(http.StatusNotFound, "volume_not_found", http.MethodDelete, "/v1/volumes/other", "")
	c.refused(http.StatusNotFound, "volume_not_found", http.MethodDelete, "/v1/volumes/other?force=true", "")
	c.as(keyAReads).refused(http.StatusForbidden, "scope", http.MethodPost, "/v1/volumes", `{"name": "x"}`)
	c.as(keyAReads).refused(http.StatusForbidden, "scope", http.MethodDelete, "/v1/volumes/kept", "")
	c.as(keyAReads).refused(http.StatusForbidden, "scope", http.MethodPut, archive, archiveOf(t, "x", "x"), "Content-Type: "+tarType)
	b.refused(http.StatusTooManyRequests, "quota", http.MethodPost, "/v1/volumes", `{"name": "third"}`)

	// One that is in use is removed by force only.
	var p apitypes.Problem
	c.want(http.StatusConflict, &p, http.MethodDelete, "/v1/volumes/kept", "")
	if p.Code != "volume_in_use" || !strings.Contains(p.Detail, sb.ID) || !strings.Contains(p.Detail, "volume kept") {
		t.Errorf("got %+v, want the sandbox and the volume by the name of the request", p)
	}
	c.want(http.StatusNoContent, nil, http.MethodDelete, first, "")
	c.want(http.StatusConflict, nil, http.MethodDelete, "/v1/volumes/kept", "")
	c.want(http.StatusNoContent, nil, http.MethodDelete, "/v1/volumes/kept?force=true", "")
	run(c, second+"/run", `{"code": "ls /kept; echo lives"}`, "lives\n")
	c.want(http.StatusNoContent, nil, http.MethodDelete, second, "")
	for _, name := range []string{"kept", "other"} {
		b.want(http.StatusNoContent, nil, http.MethodDelete, "/v1/volumes/"+name, "")
	}

	c.stop()
	mu.Lock()
	defer mu.Unlock()
	count := map[string]int{}
	for _, e := range events {
		if strings.HasSuffix(e.Operation, "-volume") {
			count[fmt.Sprint(e.Operation, " ", e.ProjectID, " ", e.Outcome, " ", e.Detail)]++
		}
		if e.Operation == "read-volume" || e.Operation == "list-volumes" {
			t.Errorf("%+v is in the audit log, want nothing of what was only looked at", e)
		}
	}
	for _, want := range []string{
		"create-volume a ok volume kept", "create-volume a volume_exists volume kept", "create-volume b quota volume third", "write-volume a ok volume kept",
		"write-volume a volume_not_found volume other", "remove-volume a volume_in_use volume kept", "remove-volume a ok volume kept", "remove-volume b ok volume other",
	} {
		if count[want] == 0 {
			t.Errorf("the audit log has %v, want %q", count, want)
		}
	}
}

// TestVolumesNotAllowed: without an operator who lets projects have volumes there are none.
func TestVolumesNotAllowed(t *testing.T) {
	c := serve(t, Config{})
	c.refused(http.StatusForbidden, "not_allowed", http.MethodPost, "/v1/volumes", `{"name": "kept"}`)
	c.refused(http.StatusForbidden, "not_allowed", http.MethodPost, "/v1/sandboxes", `{"volumes": [{"name": "kept", "path": "/kept"}]}`)
	c.refused(http.StatusForbidden, "not_allowed", http.MethodPost, "/v1/run", `{"code": "1", "volumes": [{"name": "kept", "path": "/kept"}]}`)
	c.refused(http.StatusNotFound, "volume_not_found", http.MethodDelete, "/v1/volumes/kept", "")
}

// TestVolumesOfOperator: sandboxes have the operator's volumes, which no project can write to, see or remove.
func TestVolumesOfOperator(t *testing.T) {
	at := []llmsandbox.VolumeMount{{Name: "models", Target: "/models"}}
	backend := local.New(&local.Options{StateDir: t.TempDir()})
	if _, err := llmsandbox.CreateVolume(testContext(t), backend, llmsandbox.Volume{Name: "models"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := llmsandbox.RemoveVolume(testContext(t), backend, "models", true); err != nil {
			t.Error(err)
		}
	})
	if s, err := New(&Config{Sandbox: llmsandbox.Options{Backend: backend, Volumes: at}}); err == nil {
		t.Errorf("a volume that all projects could write to is served, want an error (close: %v)", s.Close(testContext(t)))
	}
	at[0].ReadOnly = true
	c := serve(t, Config{MaxVolumes: 1, Sandbox: llmsandbox.Options{Backend: backend, Volumes: at}})
	path, sb := c.create(`{"language": "bash"}`)
	var res result
	c.want(http.StatusOK, &res, http.MethodPost, path+"/run", `{"code": "ls -d /models; touch /models/x 2>/dev/null || echo refused"}`)
	if res.Stdout != "/models\nrefused\n" || len(sb.Volumes) > 0 {
		t.Errorf("got %q and %+v, want the volume, which is not the project's", res.Stdout, sb.Volumes)
	}
	var l struct{ Volumes []apitypes.Volume }
	c.want(http.StatusOK, &l, http.MethodGet, "/v1/volumes", "")
	if len(l.Volumes) > 0 {
		t.Errorf("got %+v, want none", l.Volumes)
	}
	c.refused(http.StatusNotFound, "volume_not_found", http.MethodDelete, "/v1/volumes/models?force=true", "")
	c.refused(http.StatusNotFound, "volume_not_found", http.MethodGet, "/v1/volumes/models/archive?path=/", "")
}
