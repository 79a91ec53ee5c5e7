//go:build linux

package container

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/layout"

	"github.com/llmsandbox/llmsandbox/internal/testcluster"
	"github.com/llmsandbox/llmsandbox/internal/testengine"
	"github.com/llmsandbox/llmsandbox/internal/testimage"
)

// Versions of what the places are tried with.
const (
	compose      = "github.com/docker/compose/v5/cmd@v5.6.0"
	act          = "github.com/nektos/act@v0.2.89"
	devcontainer = "@devcontainers/cli@0.89.0"
)

// official is the base of deploy/container/Dockerfile. Without a registry, a Debian with Python has its name.
const official = "python:3.13-slim-bookworm"

// An engine has the image of docs/containers.md, made as that page says.
type engine struct {
	place
	program string // docker or podman
	tools   string // a directory for what is installed to try a place
}

// withImage starts an engine, and makes the image there. It goes with the test.
func withImage(t *testing.T, start func(testing.TB) *testengine.Engine) engine {
	t.Helper()
	testcluster.Start(t) // first, as other tests do that wait for their turn with both
	on := start(t)
	dir, err := os.MkdirTemp("", "places") // which Podman's user can read
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(dir, "deploy/container"), os.DirFS(filepath.Join(root, "deploy/container"))); err != nil {
		t.Fatal(err)
	}
	on.Load(t, debian(t))
	tools := t.TempDir()
	if err := os.WriteFile(filepath.Join(tools, "config.json"), []byte("{}"), 0o600); err != nil { // of Docker, which Podman reads too
		t.Fatal(err)
	}
	e := engine{tools: tools, program: "docker", place: place{dir: dir, env: []string{
		"DOCKER_HOST=" + on.Host, "CONTAINER_HOST=" + on.Host, "DOCKER_BUILDKIT=0", "DOCKER_CONFIG=" + tools,
		"TMPDIR=" + t.TempDir(), "PATH=" + tools + ":" + tools + "/node_modules/.bin:" + os.Getenv("PATH"),
	}}}
	if on.Podman {
		e.program = "podman"
	}
	t.Cleanup(func() { e.sh(t, e.program+" rmi --force my-app:1 llmsandbox/cli:1 "+official) })
	make := exec.Command("make", "cli-image", "ENGINE="+e.program)
	make.Dir, make.Env = root, append(os.Environ(), e.env...)
	if out, err := make.CombinedOutput(); err != nil {
		t.Fatalf("make cli-image: %v\n%s", err, out)
	}
	script, ok := strings.CutPrefix(section(t, "Docker and Podman", "sh"), "make cli-image\n")
	if !ok {
		t.Fatal("the page's commands do not begin with make cli-image")
	}
	run := e.program + " run --rm "
	if on.Podman { // whose service has another working directory, and on some machines no right to make a network
		run += "--network none "
		script = strings.NewReplacer("docker build ", "podman build ", "docker run --rm ", run, "seccomp=", "seccomp="+dir+"/").Replace(script)
	}
	if out := e.sh(t, script); !strings.HasSuffix(out, "\n42\n42\n") {
		t.Errorf("the page's commands print\n%swant 42 twice at the end", out)
	}
	e.holds(t, "process", run+"--env LLMSANDBOX_ISOLATION=process my-app:1")
	e.holds(t, "namespace", run+"--security-opt seccomp="+dir+"/deploy/container/seccomp.json --security-opt systempaths=unconfined my-app:1")
	return e
}

// debian is a file of an image with Python, by the name of the official one.
func debian(t *testing.T) string {
	t.Helper()
	index, err := layout.ImageIndexFromPath(testimage.Python(t))
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	image, err := index.Image(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	return testimage.Save(t, official, image)
}

// install builds a Go program, in a module of its own, since some cannot be built without.
func (e engine) install(t *testing.T, name, program string) {
	t.Helper()
	pkg, _, _ := strings.Cut(program, "@")
	build := exec.Command("bash", "-euc", `go mod init tool; go get "$1"; go build -o "$2" "$3"`, "bash", program, filepath.Join(e.tools, name), pkg)
	build.Dir = t.TempDir()
	if out, err := build.CombinedOutput(); err != nil {
		testimage.Unavailable(t, "this test needs "+program+": "+err.Error()+"\n"+string(out))
	}
}

func TestPodmanRootless(t *testing.T) { withImage(t, testengine.PodmanRootless) }

// TestDocker tries the places that Docker's users have.
func TestDocker(t *testing.T) {
	e := withImage(t, testengine.Docker)
	t.Run("server", func(t *testing.T) { server(t, e) })
	t.Run("compose", func(t *testing.T) {
		e.install(t, "cli-plugins/docker-compose", compose)
		const command = "docker compose -f deploy/container/compose.yaml "
		t.Cleanup(func() { e.sh(t, command+"down") }) // its network
		if out := e.sh(t, section(t, "Compose", "sh")); out != "42\n42\n" {
			t.Errorf("the page's commands print\n%swant 42 twice", out)
		}
		for _, isolation := range []string{"process", "namespace"} {
			e.holds(t, isolation, command+"run --rm "+isolation)
		}
	})
	t.Run("dev-container", func(t *testing.T) {
		e.sh(t, "npm install --silent --prefix "+e.tools+" "+devcontainer)
		if out := e.sh(t, section(t, "Dev containers", "sh")); !strings.HasSuffix(out, "\n42\n") {
			t.Errorf("the page's commands print\n%swant 42 at the end", out)
		}
		e.holds(t, "process", "devcontainer exec --workspace-folder .")
		config := fmt.Sprintf(`{"image": "my-app:1", %s}`, section(t, "Dev containers", "json"))
		if err := os.WriteFile(filepath.Join(e.dir, ".devcontainer/devcontainer.json"), []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		e.sh(t, "devcontainer up --workspace-folder . --remove-existing-container")
		e.holds(t, "namespace", "devcontainer exec --workspace-folder .")
	})
	t.Run("deployment", func(t *testing.T) { deployment(t, e) })
	t.Run("github-job", func(t *testing.T) {
		e.install(t, "act", act)
		out := e.sh(t, "XDG_CACHE_HOME=$TMPDIR XDG_CONFIG_HOME=$TMPDIR act --pull=false --workflows deploy/container/workflow.yaml --platform ubuntu-latest=my-app:1")
		for _, want := range []string{"backend local process", "A sandbox works here.", "| 42", "Job succeeded"} {
			if !strings.Contains(out, want) {
				t.Errorf("the job prints\n%swant %q", out, want)
			}
		}
	})
}
