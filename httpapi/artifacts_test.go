package httpapi

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/artifact"
)

// TestArtifactsByReference: artifacts of a result are fetched by keys of the project, and no other, and nothing else of the result is different.
func TestArtifactsByReference(t *testing.T) {
	c := serve(t, Config{})
	path, _ := c.create(`{"language": "bash"}`)
	const code = `"code": "mkdir -p artifacts; printf 12345 >artifacts/a.txt; : >artifacts/empty.txt; echo '<é>'"`
	for _, asked := range []struct{ path, body string }{{path + "/run", `{` + code + `, "artifacts": "reference"}`}, {"/v1/run", `{"language": "bash", ` + code + `, "artifacts": "reference"}`}} {
		var got struct {
			Status, Stdout string
			Artifacts      []resultArtifact
		}
		if c.want(http.StatusOK, &got, http.MethodPost, asked.path, asked.body); got.Status != "ok" || got.Stdout != "<é>\n" || len(got.Artifacts) != 2 {
			t.Fatalf("got %+v, want two artifacts", got)
		}
		a := got.Artifacts[0]
		if a.Name != "a.txt" || a.Data != nil || a.Size != 5 || !strings.HasPrefix(a.Path, artifactsPath) || got.Artifacts[1].Path == a.Path {
			t.Errorf("got %+v, want where it is", got.Artifacts)
		}
		res, text := c.as(keyAReads).do(http.MethodGet, a.Path, "")
		if res.StatusCode != http.StatusOK || text != "12345" || res.Header.Get("Content-Type") != octets || res.Header.Get("Content-Disposition") != "attachment" || res.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("got %d %v %s, want the content, which no browser shows", res.StatusCode, res.Header, text)
		}
		if res, text = c.do(http.MethodGet, got.Artifacts[1].Path, ""); res.StatusCode != http.StatusOK || text != "" {
			t.Errorf("an empty one: got %d %s, want nothing", res.StatusCode, text)
		}
		other, answer := c.as(keyB).do(http.MethodGet, a.Path, "")
		none, same := c.as(keyB).do(http.MethodGet, artifactsPath+"none", "")
		if other.StatusCode != http.StatusNotFound || none.StatusCode != http.StatusNotFound || answer != same {
			t.Errorf("by a key of another project: got %d %s, want %d %s", other.StatusCode, answer, none.StatusCode, same)
		}
		c.as("").want(http.StatusUnauthorized, nil, http.MethodGet, a.Path, "")
	}
	var events string
	if _, events = c.do(http.MethodPost, path+"/run", `{`+code+`, "artifacts": "reference"}`, "Accept: text/event-stream"); !strings.Contains(events, `"path":"`+artifactsPath) {
		t.Errorf("got %s, want a path in the result", events)
	}
	var res llmsandbox.Result
	if c.want(http.StatusOK, &res, http.MethodPost, path+"/run", `{`+code+`, "artifacts": "inline"}`); len(res.Artifacts) != 2 || string(res.Artifacts[0].Data) != "12345" {
		t.Errorf("got %+v, want the content", res)
	}
	c.want(http.StatusUnprocessableEntity, nil, http.MethodPost, path+"/run", `{`+code+`, "artifacts": "other"}`)
}

// TestArtifactsBounds: what there is no room for is in the result, and room is given back in time.
func TestArtifactsBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := artifacts{newName: rand.Text}
		big := make([]byte, maxArtifactsOfProject-2*artifactCost)
		first := a.keep("a", big)
		if first == "" || a.keep("a", nil) == "" || a.keep("a", nil) != "" {
			t.Error("want room for one big and one empty artifact of a project, and no more")
		}
		for _, project := range []string{"b", "c", "d"} {
			if a.keep(project, big) == "" {
				t.Errorf("no room for project %s, want some", project)
			}
		}
		if a.keep("e", big) != "" {
			t.Error("room for a fifth, want none")
		}
		text, err := a.refer("e", &llmsandbox.Result{Status: llmsandbox.StatusOK, Artifacts: []llmsandbox.Artifact{
			{Name: "x", Data: big, Also: []artifact.Form{{MIME: "text/html", Data: []byte("<b>")}}}, {Name: "y", Data: []byte("z")},
		}})
		var got struct{ Artifacts []resultArtifact }
		if err != nil || json.Unmarshal(text, &got) != nil || len(got.Artifacts) != 2 || got.Artifacts[0].Path != "" || got.Artifacts[0].Data == nil || len(*got.Artifacts[0].Data) != len(big) ||
			got.Artifacts[0].Also[0].Path == "" || got.Artifacts[1].Path == "" {
			t.Errorf("got %.200s, %v, want the content of what there is no room for", text, err)
		}
		if _, ok := a.find("b", first); ok {
			t.Error("another project finds it")
		}
		time.Sleep(artifactTime - time.Nanosecond)
		if data, ok := a.find("a", first); !ok || len(data) != len(big) {
			t.Error("it is gone too early")
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if _, ok := a.find("a", first); ok || len(a.kept)+len(a.of)+a.all != 0 {
			t.Errorf("got %d of %d bytes after their time, want none", len(a.kept), a.all)
		}
	})
}
