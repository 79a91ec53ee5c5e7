package testimage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// buildTimeout bounds the making of the Python image, which takes about half a minute.
const buildTimeout = 5 * time.Minute

// unwanted is left out of the Python image, for its size.
var unwanted = []string{"/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*", "/usr/share/info/*"}

// Python returns the folder of an OCI layout with a Debian that has python3. It is
// made once, with mmdebstrap from the host's own package sources, and kept in the
// user's cache folder.
func Python(t testing.TB) string {
	t.Helper()
	release := suite(t)
	cache, err := os.UserCacheDir()
	if err != nil {
		Unavailable(t, fmt.Sprintf("no cache folder for the Python image: %v", err))
	}
	final := filepath.Join(cache, "llmsandbox-test", "python-"+release+"-"+runtime.GOARCH)
	if _, err := os.Stat(final); err == nil {
		return final
	}
	if _, err := exec.LookPath("mmdebstrap"); err != nil {
		Unavailable(t, "the Python image of this test needs mmdebstrap (apt-get install mmdebstrap)")
	}
	if err := os.MkdirAll(filepath.Dir(final), 0o755); err != nil {
		t.Fatal(err)
	}
	tmp, err := os.MkdirTemp(filepath.Dir(final), "tmp-*")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(tmp)
	root := filepath.Join(tmp, "root.tar")
	debootstrap(t, release, root)
	l, err := tarball.LayerFromFile(root)
	if err != nil {
		t.Fatal(err)
	}
	img := build(t, v1.Config{
		Env: []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8"}, Cmd: []string{"python3"},
	}, l)
	made := filepath.Join(tmp, "layout")
	writeLayout(t, made, map[string]v1.Image{"latest": img})
	// Where another test was faster, its image is as good.
	if err := os.Rename(made, final); err != nil && !errors.Is(err, fs.ErrExist) {
		t.Fatal(err)
	}
	return final
}

func debootstrap(t testing.TB, suite, target string) {
	t.Helper()
	args := []string{"--quiet", "--variant=minbase", "--include=python3"}
	for _, p := range unwanted {
		args = append(args, "--dpkgopt=path-exclude="+p)
	}
	args = append(args, suite, target)
	args = append(args, sources()...)
	ctx, cancel := context.WithTimeout(t.Context(), buildTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, "mmdebstrap", args...).CombinedOutput()
	if err != nil {
		Unavailable(t, fmt.Sprintf("mmdebstrap could not make the Python image: %v\n%s", err, out[max(0, len(out)-2000):]))
	}
}

// sources are the host's own package sources: it knows which mirror to use.
func sources() []string {
	var list []string
	for _, path := range []string{"/etc/apt/sources.list", "/etc/apt/sources.list.d/debian.sources"} {
		if _, err := os.Stat(path); err == nil {
			list = append(list, path)
		}
	}
	return list
}

// suite is the Debian release of the host.
func suite(t testing.TB) string {
	t.Helper()
	data, err := os.ReadFile("/etc/os-release")
	if err != nil {
		Unavailable(t, fmt.Sprintf("the Python image is made on Debian only: %v", err))
	}
	vars := map[string]string{}
	for _, line := range strings.Split(string(data), "\n") {
		k, v, _ := strings.Cut(line, "=")
		vars[k] = strings.Trim(v, `"`)
	}
	if vars["ID"] != "debian" || vars["VERSION_CODENAME"] == "" {
		Unavailable(t, "the Python image is made on Debian only")
	}
	return vars["VERSION_CODENAME"]
}
