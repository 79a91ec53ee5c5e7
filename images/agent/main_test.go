package main

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/llmsandbox/llmsandbox/internal/scratchimage"
	"github.com/llmsandbox/llmsandbox/internal/seccomp"
)

var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

// files are the names, modes and contents in a tar stream.
func filesOf(t *testing.T, r io.Reader) []scratchimage.File {
	t.Helper()
	var found []scratchimage.File
	for tr := tar.NewReader(r); ; {
		h, err := tr.Next()
		if err == io.EOF {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, scratchimage.File{Name: h.Name, Mode: os.FileMode(h.Mode), Content: content})
	}
}

func check(t *testing.T, arch string, files []scratchimage.File) {
	t.Helper()
	if len(files) != 2 || files[0].Name != "agent" || files[0].Mode != 0o555 || files[1].Name != "seccomp" || files[1].Mode != 0o444 {
		t.Fatalf("%d files: %v, want len(files) = 2, Name = \"agent\", Mode = 0o555, Name = \"seccomp\", Mode = 0o444", len(files), files)
	}
	program, err := elf.NewFile(bytes.NewReader(files[0].Content))
	if err != nil || program.Machine != machines[arch] {
		t.Errorf("the agent is %v, %v, want no error, program.Machine = machines[arch]", program, err)
	}
	if filter, err := seccomp.Filter(arch); err != nil || !bytes.Equal(filter, files[1].Content) {
		t.Errorf("another filter: %v, want no error, bytes.Equal(filter, files[1].Content) = true", err)
	}
}

func TestImage(t *testing.T) {
	for arch := range machines {
		dir := t.TempDir()
		one, two := filepath.Join(dir, "one"), filepath.Join(dir, "two")
		for _, path := range []string{one, two} {
			if err := run(arch, "", path, "example/agent:2"); err != nil {
				t.Fatal(err)
			}
		}
		first, err := os.ReadFile(one)
		second, err2 := os.ReadFile(two)
		if err != nil || err2 != nil || !bytes.Equal(first, second) {
			t.Errorf("made twice, it differs: %v, %v, want no error, bytes.Equal(first, second) = true", err, err2)
		}
		tag, err := name.NewTag("example/agent:2")
		if err != nil {
			t.Fatal(err)
		}
		img, err := tarball.ImageFromPath(one, &tag)
		if err != nil {
			t.Fatal(err)
		}
		config, err := img.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if config.OS != "linux" || config.Architecture != arch || !slices.Equal(describe(config.Config.Entrypoint, config.Config.User), dockerfile(t)) {
			t.Errorf("%s/%s %+v, the Dockerfile says %q, want OS = \"linux\", Architecture = %s, slices.Equal(describe(config.Config.Entrypoint, config.Config.User), dockerfile(t)) = true", config.OS, config.Architecture, config.Config, dockerfile(t), arch)
		}
		content := mutate.Extract(img)
		check(t, arch, filesOf(t, content))
		content.Close()
	}
}

func describe(entrypoint []string, user string) []string {
	return []string{"FROM scratch", "COPY agent seccomp /", "USER " + user, `ENTRYPOINT ["` + strings.Join(entrypoint, `", "`) + `"]`}
}

// dockerfile are the instructions of the Dockerfile, which makes the same image.
func dockerfile(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(strings.Split(strings.TrimSpace(string(text)), "\n"), func(line string) bool { return strings.HasPrefix(line, "#") })
}

func TestDir(t *testing.T) {
	for arch := range machines {
		dir := t.TempDir()
		if err := run(arch, dir, "", ""); err != nil {
			t.Fatal(err)
		}
		var files []scratchimage.File
		for _, name := range []string{"agent", "seccomp"} {
			info, err := os.Stat(filepath.Join(dir, name))
			if err != nil || !info.ModTime().Equal(scratchimage.Epoch) {
				t.Fatalf("info = %v, err = %v, want no error, info.ModTime().Equal(scratchimage.Epoch) = true", info, err)
			}
			content, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, scratchimage.File{Name: name, Mode: info.Mode(), Content: content})
		}
		check(t, arch, files)
	}
}

func TestRunRefuses(t *testing.T) {
	for name, err := range map[string]error{
		"neither":             run("amd64", "", "", defaultTag),
		"both":                run("amd64", t.TempDir(), "x", defaultTag),
		"no such machine":     run("mips", t.TempDir(), "", defaultTag),
		"no name":             run("amd64", "", filepath.Join(t.TempDir(), "x"), "A:B:C"),
		"no folder to put it": run("amd64", filepath.Join(t.TempDir(), "missing"), "", ""),
	} {
		if err == nil {
			t.Errorf("%s: taken, want an error", name)
		}
	}
}
