package testengine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/moby/moby/client"
	"golang.org/x/sync/errgroup"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/language/all"
	"github.com/llmsandbox/llmsandbox/internal/testimage"
)

// packages are what the Debian base has of each language, and what its Dockerfile
// expects of an official base. Go is the machine's own: Debian's is too old.
var packages = []string{"ca-certificates", "python3", "python3-pip", "nodejs", "npm",
	"default-jdk-headless", "maven", "g++", "pkg-config", "r-base-core", "ruby"}

// A recipe says how the images are made on this machine.
type recipe struct {
	Root     string `json:"-"` // of the repository
	Release  string
	Packages []string
	Hooks    []string
	Go       string // version
	Files    string // digest of the Dockerfiles and what lies beside them
}

func newRecipe(ctx context.Context) (*recipe, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMOD", "GOROOT", "GOVERSION").Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	env := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(env) != 3 || !filepath.IsAbs(env[0]) {
		return nil, fmt.Errorf("go env says %q: images are built from within the repository", out)
	}
	r := &recipe{Root: filepath.Dir(env[0]), Packages: packages, Go: env[2]}
	if r.Release, err = testimage.Release(); err != nil {
		return nil, err
	}
	if r.Files, err = digest(filepath.Join(r.Root, "images")); err != nil {
		return nil, err
	}
	r.Hooks = []string{
		// As in the official Debian image: a build need not wait for the disk, and its
		// layers need not keep what apt can make or fetch again.
		`echo force-unsafe-io >"$1/etc/dpkg/dpkg.cfg.d/unsafe-io"`,
		`printf '%s\n' 'Dir::Cache::pkgcache "";' 'Dir::Cache::srcpkgcache "";' 'APT::Keep-Downloaded-Packages "false";' >"$1/etc/apt/apt.conf.d/lean"`,
		`mkdir "$1/usr/local/go"`,
		fmt.Sprintf(`tar -C '%s' --exclude=./test --exclude=./api --exclude=./doc --exclude='*_test.go' --exclude=testdata -c . | tar -C "$1/usr/local/go" -x --no-same-owner`, env[1]),
		`ln -s ../go/bin/go ../go/bin/gofmt "$1/usr/local/bin/"`,
	}
	// The machine decides where packages come from and which authorities are trusted.
	for _, path := range []string{"/etc/ssl/certs/ca-certificates.crt", "/etc/pip.conf"} {
		if _, err := os.Stat(path); err == nil {
			r.Hooks = append(r.Hooks, fmt.Sprintf("upload %s %s", path, path))
		}
	}
	return r, nil
}

// base is the image all others are built on.
func (r recipe) base() string {
	r.Files = ""
	return "llmsandbox-test/base:" + r.key()
}

// ready is another name of the base, which an engine has that has the images.
func (r recipe) ready() string { return "llmsandbox-test/ready:" + r.key() }

func (r recipe) key() string {
	data, err := json.Marshal(r)
	if err != nil {
		panic(err) // strings always can be
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

// build makes the base where it is missing, and the images on it.
func (r recipe) build(ctx context.Context, c *client.Client, host string) error {
	found, err := has(ctx, c, r.base())
	if err != nil {
		return err
	}
	if !found {
		if err := r.buildBase(ctx, c); err != nil {
			return fmt.Errorf("the base of the images: %w", err)
		}
	}
	// Two take long: pip's keeps a processor busy, apt's the disk.
	var rest []string
	for _, l := range all.Coded() {
		if l.Name != "python" && language.Family(l.Name) == l.Name { // others have no image of their own
			rest = append(rest, l.Name)
		}
	}
	var both errgroup.Group
	both.Go(func() error { return r.script(ctx, host, "python") })
	both.Go(func() error { return r.script(ctx, host, rest...) })
	if err := both.Wait(); err != nil {
		return err
	}
	_, err = c.ImageTag(ctx, client.ImageTagOptions{Source: r.base(), Target: r.ready()})
	return err
}

// script builds images of languages as users do.
func (r recipe) script(ctx context.Context, host string, languages ...string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(r.Root, "scripts", "images"), languages...)
	// The classic builder is in every Docker.
	cmd.Env = append(os.Environ(), "ENGINE=docker", "DOCKER_HOST="+host, "DOCKER_BUILDKIT=0", "BASE="+r.base(), "NETWORK=host")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("scripts/images: %w\n%s", err, out[max(0, len(out)-4000):])
	}
	return nil
}

// buildBase streams the root file system into the engine as it is made.
func (r recipe) buildBase(ctx context.Context, c *client.Client) error {
	pr, pw := io.Pipe()
	made := make(chan error, 1)
	go func() {
		err := testimage.Debian(ctx, pw, r.Packages, r.Hooks...)
		pw.CloseWithError(err)
		made <- err
	}()
	res, err := c.ImageImport(ctx, client.ImageImportSource{Source: pr, SourceName: "-"}, r.base(),
		client.ImageImportOptions{Changes: []string{"ENV PATH=/usr/local/bin:/usr/bin:/bin LANG=C.UTF-8"}})
	if err == nil {
		err = messages(res)
		res.Close()
	}
	pr.CloseWithError(err)
	if problem := <-made; problem != nil {
		return problem // the cause of the other
	}
	return err
}

// digest is of all files below a directory, by name and content.
func digest(dir string) (string, error) {
	h := sha256.New()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(path, ".go") || strings.HasSuffix(path, ".md") {
			return err
		}
		data, err := os.ReadFile(path)
		fmt.Fprintf(h, "%s %d\n", strings.TrimPrefix(path, dir), len(data))
		h.Write(data)
		return err
	})
	return hex.EncodeToString(h.Sum(nil)), err
}
