package layers

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/language"
)

// quick is a language whose libraries something installs faster.
var quick = &language.Language{Name: "quick", Title: "Quick", Libraries: &language.Libraries{
	Program: "quick", Check: shelf.Libraries.Check, Registries: noRegistries, Accelerator: &language.Accelerator{Program: "faster", Library: "faster<2"},
}}

// TestFetchedAccelerator: that there is none is said, and is no error unless the caller has gone.
func TestFetchedAccelerator(t *testing.T) {
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		keeper keeper
		source string
		said   []string
	}{
		"there":         {source: "/layers/" + acceleratorKey(quick, "amd64")},
		"failed before": {keeper: keeper{layers: fakeLayers{gone: true}}, said: []string{"installing without faster: it could not be had not long ago"}},
		"cannot be had": {keeper: keeper{layers: fakeLayers{fills: true}, create: broken}, said: []string{"installing without faster: libraries could not be installed: faster<2 (quick): open the sandbox that installs: broken"}},
	} {
		t.Run(name, func(t *testing.T) {
			var said []string
			spec := backend.Spec{Progress: func(p backend.Progress) {
				if p.Stage != stageInstall || p.Message != "a" || p.Done {
					t.Errorf("report %+v, want output of the installation of a", p)
				}
				said = append(said, p.Output)
			}}
			q, err := maker(&c.keeper).Libraries(quick, []string{"a"}, Options{}, spec)
			if err != nil {
				t.Fatal(err)
			}
			source, err := q.fetchedAccelerator(t.Context(), "amd64")
			if err != nil || source != c.source || !slices.Equal(said, c.said) {
				t.Errorf("%q, %v, said %q, want %q, no error, said %q", source, err, said, c.source, c.said)
			}
			about := c.keeper.layers.asked[0]
			if about.Cache != "faster" || about.Language != "quick" || about.Image != "" {
				t.Errorf("described as %+v, want the cache faster of quick", about)
			}
		})
	}
	if acceleratorKey(quick, "amd64") == acceleratorKey(quick, "arm64") {
		t.Error("the key is the same for another processor, want another")
	}
}

func TestHostProgram(t *testing.T) {
	binary := []byte("\x7fELF and more")
	for name, c := range map[string]struct {
		content []byte
		link    string // the name of the file that the program is a link to
		want    bool
	}{
		"a program":           {binary, "", true},
		"a link":              {binary, "elsewhere/faster", true},
		"a link to a wrapper": {binary, "elsewhere/wrapper", false},
		"a script":            {[]byte("#!/bin/sh\n" + strings.Repeat("#", 100)), "", false},
		"an empty file":       {nil, "", false},
		"nothing":             {nil, "elsewhere/none", false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			t.Setenv("PATH", dir)
			file := filepath.Join(dir, "faster")
			if c.link != "" {
				if err := os.Mkdir(filepath.Join(dir, "elsewhere"), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.Symlink(c.link, file); err != nil {
					t.Skip(err)
				}
				file = filepath.Join(dir, c.link)
			}
			if name != "nothing" {
				if err := os.WriteFile(file, c.content, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			f := hostProgram("faster")
			if (f != nil) != c.want {
				t.Fatalf("found: %v, want %v", f != nil, c.want)
			}
			if f == nil {
				return
			}
			defer f.Close()
			if got, err := io.ReadAll(f); err != nil || len(got) != len(c.content) {
				t.Errorf("%d bytes, %v, want %d", len(got), err, len(c.content))
			}
		})
	}
}
