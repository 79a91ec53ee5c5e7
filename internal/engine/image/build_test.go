package image

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/moby/moby/client"
)

func TestBases(t *testing.T) {
	dockerfile := `# FROM comment
ARG TAG=1
ARG HOST
from --platform=linux/amd64 $HOST/a:${TAG} as one
ARG TAG=9
FROM one AS two
FROM "quoted"
FROM b:${NONE:-2}
FROM scratch
COPY --from=two / /
`
	got := fmt.Sprint(bases(dockerfile, map[string]string{"HOST": "h.test:5000"}))
	if want := "[h.test:5000/a:1 docker.io/library/b:2]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestBaseCredentials(t *testing.T) {
	auth := base64.URLEncoding.EncodeToString([]byte(`{"username":"u","password":"p"}`))
	s := &Store{Auth: func(_ context.Context, ref string) (string, error) {
		switch {
		case strings.HasPrefix(ref, "docker.io/"):
			return auth, nil
		case strings.HasPrefix(ref, "bad.test/"):
			return "hush", nil
		case strings.HasPrefix(ref, "broken.test/"):
			return "", errors.New("no helper")
		}
		return "", nil
	}}
	all, err := s.baseCredentials(t.Context(), "FROM a\nFROM h.test/b\n", nil)
	if err != nil || len(all) != 1 || all[hubKey].Username != "u" {
		t.Errorf("got %v %v, want no error, len(all) = 1, Username = \"u\"", all, err)
	}
	if _, err := s.baseCredentials(t.Context(), "FROM bad.test/a", nil); err == nil || strings.Contains(err.Error(), "hush") {
		t.Errorf("got %v, want an error without \"hush\"", err)
	}
	if _, err := s.baseCredentials(t.Context(), "FROM broken.test/a", nil); err == nil || !strings.Contains(err.Error(), "no helper") {
		t.Errorf("got %v, want an error containing \"no helper\"", err)
	}
}

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
