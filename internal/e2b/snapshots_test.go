package e2b

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/service"
)

// TestSnapshotsNeedRoot: without a root that can be written to, no sandbox would begin with a snapshot, so there are none.
func TestSnapshotsNeedRoot(t *testing.T) {
	h := serve(t)
	if status, text, _ := h.ask(testKey, http.MethodPost, "/sandboxes/"+h.make(`{}`).ID+"/snapshots", ``); status != http.StatusBadRequest || !strings.Contains(text, "--writable-root") {
		t.Errorf("got %d %s", status, text)
	}
}

// TestSnapshots: a snapshot has the files of its sandbox, for sandboxes of its project.
func TestSnapshots(t *testing.T) {
	t.Setenv("LLMSANDBOX_CACHE_DIR", t.TempDir())
	h := serveWith(t, func(core *service.Config, _ *Config) {
		core.Sandbox.WritableRoot, core.MaxImages, core.ImageDir = true, 3, t.TempDir()
	})
	first := h.make(`{}`)
	sb, err := h.service.Get(testContext(t), testProject, innerID(first.ID))
	if err != nil {
		t.Fatal(err)
	}
	if err := sb.WriteFile(testContext(t), "kept", []byte("kept")); err != nil {
		t.Fatal(err)
	}
	take := func(body string) (made snapshot) {
		t.Helper()
		status, text, _ := h.ask(testKey, http.MethodPost, "/sandboxes/"+first.ID+"/snapshots", body)
		if err := json.Unmarshal([]byte(text), &made); status != http.StatusCreated || err != nil || strings.Contains(text, "null") {
			t.Fatalf("snapshot %s: %d %s, %v", body, status, text, err)
		}
		return made
	}
	unnamed, named := take(``), take(`{"name": "mine:v2", "memory": false}`)
	if !strings.HasPrefix(unnamed.ID, generated) || len(unnamed.Names) > 0 || named.ID != "mine:v2" || !slices.Equal(named.Names, []string{"mine:v2"}) {
		t.Errorf("they are %+v and %+v", unnamed, named)
	}
	if err := sb.WriteFile(testContext(t), "more", []byte("more")); err != nil {
		t.Fatal(err)
	}
	take(`{"name": "mine:v2"}`) // again, in its place
	list := func(key, query string) (ids []string, next string) {
		t.Helper()
		status, text, header := h.ask(key, http.MethodGet, "/snapshots"+query, "")
		var all []snapshot
		if err := json.Unmarshal([]byte(text), &all); status != http.StatusOK || err != nil || !strings.HasPrefix(text, "[") {
			t.Fatalf("list %s: %d %s, %v", query, status, text, err)
		}
		for _, s := range all {
			ids = append(ids, s.ID)
		}
		return ids, header.Get("X-Next-Token")
	}
	for query, want := range map[string][]string{
		"": {"mine:v2", unnamed.ID}, "?name=mine": {"mine:v2"}, "?name=mine:v2": {"mine:v2"}, "?name=none": nil, "?name=" + unnamed.ID + defaultTag: {unnamed.ID},
		"?sandboxID=" + first.ID: {"mine:v2", unnamed.ID}, "?sandboxID=none": nil,
	} {
		if ids, next := list(testKey, query); !slices.Equal(ids, want) || next != "" {
			t.Errorf("list %q: %v, %q, want %v", query, ids, next, want)
		}
	}
	page, next := list(readKey, "?limit=1")
	rest, end := list(readKey, "?limit=1&nextToken="+next)
	if !slices.Equal(page, []string{"mine:v2"}) || !slices.Equal(rest, []string{unnamed.ID}) || end != "" {
		t.Errorf("pages: %v, %v, and then %q", page, rest, end)
	}
	if ids, _ := list(otherKey, ""); len(ids) > 0 {
		t.Errorf("another project sees %v", ids)
	}

	second := h.make(`{"templateID": "mine:v2"}`)
	other := h.make(`{"templateID": "` + unnamed.ID + defaultTag + `"}`)
	for _, made := range []sandbox{second, other} {
		sb, err := h.service.Get(testContext(t), testProject, innerID(made.ID))
		if err != nil {
			t.Fatal(err)
		}
		if text, err := sb.ReadFile(testContext(t), Home+"/kept"); err != nil || string(text) != "kept" {
			t.Errorf("%s: got %q, %v", made.Template, text, err)
		}
	}

	for _, c := range []struct {
		key, method, path, body string
		want                    int
	}{
		{otherKey, http.MethodPost, "/v2/sandboxes", `{"templateID": "mine:v2"}`, http.StatusNotFound},
		{otherKey, http.MethodPost, "/sandboxes/" + first.ID + "/snapshots", ``, http.StatusNotFound},
		{otherKey, http.MethodDelete, "/templates/mine:v2", ``, http.StatusNotFound},
		{readKey, http.MethodPost, "/sandboxes/" + first.ID + "/snapshots", ``, http.StatusForbidden},
		{readKey, http.MethodDelete, "/templates/mine:v2", ``, http.StatusForbidden},
		{testKey, http.MethodPost, "/sandboxes/" + first.ID + "/snapshots", `{"memory": true}`, http.StatusBadRequest},
		{testKey, http.MethodPost, "/sandboxes/" + first.ID + "/snapshots", `{"name": "../x"}`, http.StatusBadRequest},
		{testKey, http.MethodGet, "/snapshots?nextToken=-", ``, http.StatusBadRequest},
		{testKey, http.MethodGet, "/snapshots?limit=0", ``, http.StatusBadRequest},
		{testKey, http.MethodDelete, "/templates/..%2Fmine", ``, http.StatusNotFound},
		{testKey, http.MethodDelete, "/templates/base", ``, http.StatusNotFound},
		{testKey, http.MethodDelete, "/templates/mine:v2", ``, http.StatusConflict}, // a sandbox has it
		{testKey, http.MethodDelete, "/sandboxes/" + second.ID, ``, http.StatusNoContent},
		{testKey, http.MethodDelete, "/templates/mine:v2", ``, http.StatusNoContent},
		{testKey, http.MethodDelete, "/templates/mine:v2", ``, http.StatusNotFound},
		{testKey, http.MethodPost, "/v2/sandboxes", `{"templateID": "mine:v2"}`, http.StatusNotFound},
	} {
		if status, text, _ := h.ask(c.key, c.method, c.path, c.body); status != c.want || strings.Contains(text, "image.tar") {
			t.Errorf("%s %s %s: %d %s, want %d", c.method, c.path, c.body, status, text, c.want)
		}
	}
	if _, err := h.service.Create(testContext(t), "b", llmsandbox.Options{Image: "project:" + unnamed.ID}); err == nil {
		t.Error("another project has a sandbox of a snapshot")
	}
}
