package kubernetes

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/environ"
)

func TestReadHeader(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     header
		rest     string
		err      error
	}{
		{"all", "amd64\x00/app\x00A=1\x00B=x\ny\x00\x00stream", header{"amd64", "/app", []string{"A=1", "B=x\ny"}}, "stream", nil},
		{"no variables, no folder", "arm64\x00\x00\x00", header{arch: "arm64"}, "", nil},
		{"nothing", "", header{}, "", io.EOF},
		{"no architecture", "\x00/\x00\x00", header{}, "", errHeader},
		{"ends in the folder", "amd64\x00/a", header{}, "", io.ErrUnexpectedEOF},
		{"ends in the variables", "amd64\x00/\x00A=1\x00", header{}, "", io.ErrUnexpectedEOF},
		{"too long", "amd64\x00/\x00" + strings.Repeat("A", maxHeader) + "\x00\x00", header{}, "", errHeader},
		{"too many", "amd64\x00/\x00" + strings.Repeat("A=\x00", maxVariables+1) + "\x00", header{}, "", errHeader},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := bufio.NewReader(strings.NewReader(c.in))
			got, err := readHeader(r)
			if !errors.Is(err, c.err) {
				t.Fatalf("error %v, want %v", err, c.err)
			}
			if err != nil {
				return
			}
			if got.arch != c.want.arch || got.dir != c.want.dir || !slices.Equal(got.env, c.want.env) {
				t.Errorf("got %q, want %q", got, c.want)
			}
			rest, err := io.ReadAll(r)
			if err != nil || string(rest) != c.rest {
				t.Errorf("left %q (%v), want %q: the stream's own bytes must stay", rest, err, c.rest)
			}
		})
	}
}

func FuzzReadHeader(f *testing.F) {
	f.Add([]byte("amd64\x00/app\x00A=1\x00\x00stream"))
	f.Add([]byte("\x00\x00\x00"))
	f.Add([]byte("amd64\x00/\x00A"))
	f.Fuzz(func(t *testing.T, in []byte) {
		r := bufio.NewReader(bytes.NewReader(in))
		h, err := readHeader(r)
		if err != nil {
			return
		}
		again := h.arch + "\x00" + h.dir + "\x00"
		for _, v := range h.env {
			again += v + "\x00"
		}
		again += "\x00"
		rest, err := io.ReadAll(r)
		if err != nil || again+string(rest) != string(in) {
			t.Errorf("%q was read as %q with %q left, want no error, again+string(rest) = %q", in, h, rest, string(in))
		}
	})
}

func TestComplete(t *testing.T) {
	h := header{arch: "arm64", dir: "/app", env: []string{
		"PATH=/go/bin:/bin", "HOSTNAME=sandbox", "HOME=/", "KUBERNETES_SERVICE_HOST=10.96.0.1", "KUBERNETES_PORT=tcp://10.96.0.1:443",
		"LLMSANDBOX_TOKEN=secret", "JAVA_HOME=/opt/java", "USER=app", "SAID=by the image", "broken", "=x",
	}}
	g := complete(backend.Guest{Env: []string{"SAID=by the caller", "HOME=/own", "LLMSANDBOX_X=1"}, Workdir: "/sandbox", TempDir: "/tmp", Image: "i"}, h)
	want := []string{
		"PATH=/go/bin:/bin", "USER=app", "LOGNAME=sandbox", "JAVA_HOME=/opt/java", "SAID=by the caller",
		"HOME=/own", "TMPDIR=/tmp", "LANG=C.UTF-8", "LC_ALL=C.UTF-8",
	}
	if !slices.Equal(g.Env, want) {
		t.Errorf("environment\n%q, want\n%q", g.Env, want)
	}
	if g.StartDir != "/app" || g.Arch != "arm64" || g.Image != "i" {
		t.Errorf("guest %+v, want StartDir = \"/app\", Arch = \"arm64\", Image = \"i\"", g)
	}
	for _, dir := range []string{"", "/", "/sandbox"} {
		if g := complete(backend.Guest{Workdir: "/sandbox"}, header{dir: dir}); g.StartDir != "" {
			t.Errorf("an image whose directory is %q: programs start in %q, want empty", dir, g.StartDir)
		}
	}
	own := asked(backend.Spec{User: "root:7", Workdir: "/srv/project", Env: []string{"LOGNAME=me"}}, "i")
	if g := complete(own, h); g.StartDir != "/srv/project" || environ.Value(g.Env, "USER") != "root" || environ.Value(g.Env, "PATH") != "/go/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin" || environ.Value(g.Env, "LOGNAME") != "me" || environ.Value(g.Env, "HOME") != "/srv/project" {
		t.Errorf("root in a directory of its own: %+v, want that it starts there, and its name", g)
	}
	if g := complete(backend.Guest{Workdir: "/sandbox"}, header{}); g.Env[0] != environ.DefaultPath {
		t.Errorf("without a PATH: %q, want g.Env[0] = DefaultPath", g.Env)
	}
}
