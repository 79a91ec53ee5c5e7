package image

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/moby/moby/client"
)

func TestListWhileOthersRemove(t *testing.T) {
	for name, c := range map[string]struct {
		failures int64 // before the first answer
		status   int
		want     string // in the error; "" for none
	}{
		"at once":        {0, http.StatusInternalServerError, ""},
		"after removals": {listTries - 1, http.StatusInternalServerError, ""},
		"never":          {listTries, http.StatusInternalServerError, "image not known"},
		"forbidden":      {1, http.StatusForbidden, "image not known"},
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int64
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if asked.Add(1) <= c.failures {
					w.WriteHeader(c.status)
					_, _ = w.Write([]byte(`{"message":"image not known"}`))
					return
				}
				_, _ = w.Write([]byte(`[{"Id":"sha256:one"}]`))
			}))
			defer s.Close()
			engine, err := client.New(client.WithHost("tcp://"+s.Listener.Addr().String()), client.WithAPIVersion("1.41"))
			if err != nil {
				t.Fatal(err)
			}
			defer engine.Close()
			ids, err := (&leftovers{store: &Store{Client: engine}}).list(t.Context())
			if c.want == "" && (err != nil || !ids["sha256:one"]) {
				t.Errorf("%v, %v, want sha256:one, no error", ids, err)
			}
			if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if asked.Load() > listTries {
				t.Errorf("asked %d times, want at most %d", asked.Load(), listTries)
			}
		})
	}
}
