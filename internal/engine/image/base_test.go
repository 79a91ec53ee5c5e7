package image

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
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
