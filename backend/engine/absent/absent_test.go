package absent

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"
)

func TestContainer(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{errdefs.ErrNotFound.WithMessage("No such container: x"), true},
		{errdefs.ErrInternal.WithMessage("getting container from store x: no such container"), true},
		{errdefs.ErrInternal.WithMessage("x: container has already been removed"), true},
		{errdefs.ErrInternal.WithMessage("no such image"), false},
		{errdefs.ErrConflict.WithMessage("no such container runs"), false},
		{errors.New("no such container"), false},
	} {
		if got := Container(c.err); got != c.want {
			t.Errorf("%v: %v", c.err, got)
		}
	}
}

func TestList(t *testing.T) {
	for name, c := range map[string]struct {
		failures int
		message  string
		asked    int
		ok       bool
	}{
		"at once":             {0, "", 1, true},
		"while two go":        {2, "no such container", 3, true},
		"while all go always": {listTries, "no such container", listTries, false},
		"a real failure":      {1, "database is locked", 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if asked++; asked <= c.failures {
					w.WriteHeader(http.StatusInternalServerError)
					_, _ = w.Write([]byte(`{"message":"` + c.message + `"}`))
					return
				}
				_, _ = w.Write([]byte(`[{"Id":"one"}]`))
			}))
			defer s.Close()
			engine, err := client.New(client.WithHost("tcp://"+s.Listener.Addr().String()), client.WithAPIVersion("1.41"))
			if err != nil {
				t.Fatal(err)
			}
			defer engine.Close()
			got, err := List(t.Context(), engine, client.ContainerListOptions{})
			if (err == nil) != c.ok || c.ok && (len(got) != 1 || got[0].ID != "one") || asked != c.asked {
				t.Errorf("%v, %v, asked %d times", got, err, asked)
			}
		})
	}
}
