package engine

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/volume"

	"github.com/llmsandbox/llmsandbox/backend"
)

// TestLate: a container past its deadline is removed unless its agent says that it has
// another, and its clock stands still while it is paused.
func TestLate(t *testing.T) {
	past, future := time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	const agent = `{"Id":"c","Config":{"Env":["LLMSANDBOX_TOKEN=t","LLMSANDBOX_GUEST={\"Workdir\":\"/w\"}"]}}`
	for _, c := range []struct {
		name    string
		at      time.Time
		state   container.ContainerState
		inspect string // "" fails
		want    bool
	}{
		{"without one", time.Time{}, container.StateRunning, agent, false},
		{"with time left", future, container.StateRunning, agent, false},
		{"whose agent does not answer", past, container.StateRunning, agent, true},
		{"without an agent", past, container.StateRunning, `{"Id":"c","Config":{}}`, true},
		{"that does not run", past, container.StateCreated, agent, true},
		{"that is paused", past, container.StatePaused, agent, false},
		{"of an engine that does not answer", past, container.StateRunning, "", false},
	} {
		client := engineOf(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			if !strings.HasSuffix(r.URL.Path, "/containers/c/json") || c.inspect == "" {
				w.WriteHeader(http.StatusInternalServerError)
				return
			}
			_, _ = io.WriteString(w, c.inspect)
		})
		b, err := New(client, Flavor{Name: "docker"}, &Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := b.late(t.Context(), container.Summary{ID: "c", State: c.state}, c.at); got != c.want {
			t.Errorf("a container %s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestMovedDeadlines: of several records the last one counts, in whatever order they come.
func TestMovedDeadlines(t *testing.T) {
	record := func(of, number, at string) volume.Volume {
		return volume.Volume{Name: of + number, Labels: map[string]string{labelContainer: of, labelNumber: number, labelDeadline: at}}
	}
	all := []volume.Volume{
		record("a", "9", "2031-01-01T00:00:00Z"), record("a", "10", "2032-01-01T00:00:00Z"), record("a", "8", noDeadline),
		record("b", "1", noDeadline),
	}
	for _, list := range [][]volume.Volume{all, {all[1], all[3], all[2], all[0]}} {
		b := &Backend{client: engineOf(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(map[string]any{"Volumes": list})
		})}
		got, err := b.movedDeadlines(t.Context(), "")
		if err != nil || len(got) != 2 {
			t.Fatalf("%+v, %v, want no error, len(got) = 2", got, err)
		}
		if a := got["a"]; a.volume != "a10" || a.number != 10 || a.at.Year() != 2032 || len(a.obsolete) != 2 {
			t.Errorf("a: %+v, want its tenth", a)
		}
		if b := got["b"]; b.volume != "b1" || !b.at.IsZero() || len(b.obsolete) != 0 {
			t.Errorf("b: %+v, want none", b)
		}
	}
	if m, err := decodeMoved(volume.Volume{Labels: map[string]string{labelNumber: "1", labelDeadline: "soon"}}); err == nil {
		t.Errorf("a deadline of 'soon' was taken: %+v, want an error", m)
	}
}

// TestRecordDeadlineAtOnce: a name that another process takes at the same moment is left to
// it, whether the engine answers with the other's volume or fails.
func TestRecordDeadlineAtOnce(t *testing.T) {
	for _, failure := range []string{
		"", `adding volume to state: name x is in use: volume already exists`, `creating volume directory \"/v/x/_data\": mkdir /v/x/_data: no such file or directory`,
	} {
		fails := failure != ""
		var made []volume.Volume
		c := engineOf(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			switch {
			case r.Method == http.MethodGet:
				_ = json.NewEncoder(w).Encode(map[string]any{"Volumes": made})
			case r.Method == http.MethodDelete && fails: // the other process has removed it
				w.WriteHeader(http.StatusInternalServerError)
				_, _ = io.WriteString(w, `{"message":"no volume with name x found in database: no such volume"}`)
			case r.Method == http.MethodDelete:
				w.WriteHeader(http.StatusNoContent)
			case made == nil: // the other process is faster
				made = []volume.Volume{{Name: "other", Labels: map[string]string{labelContainer: "c", labelNumber: "1", labelDeadline: noDeadline}}}
				if fails {
					w.WriteHeader(http.StatusInternalServerError)
					_, _ = io.WriteString(w, `{"message":"`+failure+`"}`)
					return
				}
				_ = json.NewEncoder(w).Encode(made[0])
			default:
				var asked volume.CreateRequest
				_ = json.NewDecoder(r.Body).Decode(&asked)
				made = append(made, volume.Volume{Name: asked.Name, Labels: asked.Labels})
				_ = json.NewEncoder(w).Encode(made[1])
			}
		})
		h := &host{backend: &Backend{client: c, flavor: Flavor{Name: "podman"}}, container: "c"}
		if err := h.RecordDeadline(t.Context(), backend.Info{}, true); err != nil {
			t.Errorf("fails with %q: %v, want no error", failure, err)
		}
		if len(made) != 2 || made[1].Labels[labelNumber] != "2" {
			t.Errorf("fails with %q: made %+v, want a second record with number 2", failure, made)
		}
	}
}
