package engine

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/moby/moby/api/types/container"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agenthost"
)

// vanishing is a backend whose engine removes every container just when it is asked about
// one, and says so as Podman does.
func vanishing(t *testing.T, list string) *Backend {
	asked := false
	c := engineOf(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if strings.HasSuffix(r.URL.Path, "/containers/json") && asked {
			_, _ = io.WriteString(w, list)
			return
		}
		if strings.HasSuffix(r.URL.Path, "/volumes") {
			_, _ = io.WriteString(w, `{"Volumes":[]}`)
			return
		}
		asked = true
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(w, `{"cause":"no such container","message":"getting container from store \"c\": no such container","response":500}`)
	})
	b, err := New(c, Flavor{Name: "podman"}, &Options{})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestAVanishingContainerIsGone(t *testing.T) {
	b := vanishing(t, `[]`)
	if _, err := b.Attach(t.Context(), "c"); !errors.Is(err, backend.ErrNotFound) {
		t.Errorf("attach: %v", err)
	}
	if _, err := b.running(t.Context(), "c"); !errors.Is(err, backend.ErrNotFound) {
		t.Errorf("enter: %v", err)
	}
	if found := b.collect(t.Context(), container.Summary{ID: "c"}); found != nil {
		t.Errorf("collected %v", found)
	}
	h := &host{backend: b, container: "c", until: waitNotRunning}
	s := agenthost.New(agenthost.Attached, h, agenthost.Description{})
	if _, err := s.Dial(t.Context()); !errors.Is(err, backend.ErrNotFound) {
		t.Errorf("dial: %v", err)
	}
	if !h.Await(t.Context()) {
		t.Error("its end is not noticed")
	}
	if err := s.Destroy(t.Context()); err != nil {
		t.Errorf("remove: %v", err)
	}
}

func TestAVanishingContainerSpoilsNoList(t *testing.T) {
	if all, err := vanishing(t, `[]`).List(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("%v, %v", all, err)
	}
	// It is gone when it is removed, too.
	b := vanishing(t, `[{"Id":"c","Names":["/c"],"State":"exited"}]`)
	if found, err := b.collectContainers(t.Context()); err != nil || len(found) != 0 {
		t.Errorf("%v, %v", found, err)
	}
}

// TestEnteringWhatIsBeingRemoved: engines that still know the container report its state.
func TestEnteringWhatIsBeingRemoved(t *testing.T) {
	for state, want := range map[string]error{
		`{"Status":"removing"}`:               backend.ErrNotFound,
		`{"Status":"dead","Dead":true}`:       backend.ErrNotFound,
		`{"Running":true,"Paused":true}`:      backend.ErrUnsupported,
		`{"Status":"running","Running":true}`: nil,
	} {
		c := engineOf(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"Id":"c","State":`+state+`}`)
		})
		b, err := New(c, Flavor{Name: "docker"}, &Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.running(t.Context(), "c"); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", state, err, want)
		}
	}
}
