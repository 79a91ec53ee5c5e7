package containers

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"
)

func TestAbsent(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{errdefs.ErrNotFound.WithMessage("No such container: x"), true},
		{errdefs.ErrInternal.WithMessage("getting container from store x: no such container"), true},
		{errdefs.ErrInternal.WithMessage("x: container has already been removed"), true},
		{errdefs.ErrInternal.WithMessage("no such image"), false},
		{errdefs.ErrInternal.WithMessage("container x is in state removing: container state improper"), false},
		{errdefs.ErrConflict.WithMessage("no such container runs"), false},
		{errors.New("no such container"), false},
	} {
		if got := Absent(c.err); got != c.want {
			t.Errorf("%v: %v, want %v", c.err, got, c.want)
		}
	}
}

func TestList(t *testing.T) {
	for name, c := range map[string]struct {
		failures int
		message  string
		inspect  int // what a question about the dead one is answered with
		asked    int
		want     string
		ok       bool
	}{
		"at once":                  {0, "", http.StatusOK, 1, "one dead", true},
		"while two go":             {2, "no such container", http.StatusOK, 3, "one dead", true},
		"while all go always":      {listTries, "no such container", http.StatusOK, listTries, "", false},
		"a real failure":           {1, "database is locked", http.StatusOK, 1, "", false},
		"one that is not there":    {0, "", http.StatusNotFound, 1, "one", true},
		"one that cannot be known": {0, "", http.StatusInternalServerError, 1, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if strings.HasSuffix(r.URL.Path, "/containers/dead/json") {
					w.WriteHeader(c.inspect)
					_, _ = w.Write([]byte(`{"message":"inspected"}`))
					return
				}
				if asked++; asked <= c.failures {
					w.WriteHeader(http.StatusInternalServerError)
					_, _ = w.Write([]byte(`{"message":"` + c.message + `"}`))
					return
				}
				_, _ = w.Write([]byte(`[{"Id":"one","State":"running"},{"Id":"dead","State":"dead"}]`))
			}))
			defer s.Close()
			engine, err := client.New(client.WithHost("tcp://"+s.Listener.Addr().String()), client.WithAPIVersion("1.41"))
			if err != nil {
				t.Fatal(err)
			}
			defer engine.Close()
			got, err := List(t.Context(), engine, client.ContainerListOptions{})
			var ids []string
			for _, one := range got {
				ids = append(ids, one.ID)
			}
			if (err == nil) != c.ok || strings.Join(ids, " ") != c.want || asked != c.asked {
				t.Errorf("%v, %v, asked %d times, want success = %v, strings.Join(ids, \" \") = %v, asked = %d", ids, err, asked, c.ok, c.want, c.asked)
			}
		})
	}
}

func TestPipe(t *testing.T) {
	broken, refused := errors.New("broken"), errors.New("refused")
	all := func(r io.Reader) error { _, err := io.Copy(io.Discard, r); return err }
	none := func(io.Reader) error { return refused }
	for name, c := range map[string]struct {
		write error
		read  func(io.Reader) error
		want  error
	}{
		"good": {nil, all, nil}, "the writer fails": {broken, all, broken}, "the reader refuses": {nil, none, refused},
		"both": {broken, none, broken},
	} {
		err := Pipe(func(w io.Writer) error {
			if c.write != nil {
				return c.write
			}
			for range 100 {
				if _, err := w.Write(make([]byte, 10_000)); err != nil {
					return err
				}
			}
			return nil
		}, c.read)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}
