package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

const source = "package main\n\nfunc main() { println(42) }\n"

// compile makes a program of the platform.
func compile(t *testing.T, env ...string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "build", "-o", "program", "main.go")
	cmd.Dir, cmd.Env = dir, append(append(os.Environ(), "GOOS=linux", "CGO_ENABLED=0"), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return filepath.Join(dir, "program")
}

// The image is the one that the Dockerfile describes.
func TestImage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "image.tar")
	if err := run(compile(t), "amd64", path, "example/cli:2"); err != nil {
		t.Fatal(err)
	}
	tag, err := name.NewTag("example/cli:2")
	if err != nil {
		t.Fatal(err)
	}
	img, err := tarball.ImageFromPath(path, &tag)
	if err != nil {
		t.Fatal(err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	want := slices.DeleteFunc(strings.Split(strings.TrimSpace(string(text)), "\n"), func(line string) bool { return strings.HasPrefix(line, "#") })
	got := []string{"FROM scratch", "COPY llmsandbox /", "USER " + config.Config.User, `ENTRYPOINT ["` + strings.Join(config.Config.Entrypoint, `", "`) + `"]`}
	if !slices.Equal(got, want) || config.OS != "linux" || config.Architecture != "amd64" {
		t.Errorf("%s/%s %q, the Dockerfile says %q", config.OS, config.Architecture, got, want)
	}
}

func TestRefuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "image.tar")
	refused := map[string]error{
		"-program":  run("", "amd64", path, defaultTag),
		"bad magic": run("main.go", "amd64", path, defaultTag),
	}
	if runtime.GOOS == "linux" {
		refused["not static"] = run("/bin/sh", "amd64", path, defaultTag)
	}
	for want, err := range refused {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
