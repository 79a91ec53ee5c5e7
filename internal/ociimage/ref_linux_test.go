package ociimage

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParseRef(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.MkdirAll("lay", 0o755); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]string{"lay/oci-layout": "{}", "x.tar": "", "python": "#!/bin/sh\n"} {
		if err := os.WriteFile(name, []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	saved := append(make([]byte, 257), "ustar\x00rest"...)
	if err := os.WriteFile("saved", saved, 0o644); err != nil {
		t.Fatal(err)
	}
	for ref, want := range map[string]struct {
		kind refKind
		name string
		text string
	}{
		"./lay":                               {kindLayout, "oci:" + dir + "/lay", ""},
		"./lay:v1":                            {kindLayout, "oci:" + dir + "/lay:v1", ""},
		dir + "/lay:v1":                       {kindLayout, "oci:" + dir + "/lay:v1", ""},
		"oci:lay:v1":                          {kindLayout, "oci:" + dir + "/lay:v1", ""},
		"lay":                                 {text: "./lay"},
		"lay:v1":                              {text: "docker://lay:v1"},
		"./saved":                             {kindArchive, "docker-archive:" + dir + "/saved", ""},
		"saved":                               {text: "./saved"},
		"docker-archive:saved:h.test:5/a/b:1": {kindArchive, "docker-archive:" + dir + "/saved:h.test:5/a/b:1", ""},
		"docker-archive:x.tar":                {kindArchive, "docker-archive:" + dir + "/x.tar", ""},
		"x.tar":                               {text: "neither"}, // empty: no tar
		"gone.tar":                            {text: "neither"},
		"oci:gone":                            {text: "no such file"},
		"python":                              {kindRegistry, "", ""}, // the file here is no image
		"docker://lay":                        {kindRegistry, "", ""},
		"h.test:5000/a/b:1":                   {kindRegistry, "h.test:5000/a/b:1", ""},
		"sha256:" + strings.Repeat("0", 64):   {kindID, "sha256:" + strings.Repeat("0", 64), ""},
		"h.test/a@sha256:123":                 {text: "no valid registry reference"},
		"a\nb":                                {text: "control character"},
	} {
		r, err := parseRef(ref)
		if want.text != "" {
			if err == nil || !strings.Contains(err.Error(), want.text) {
				t.Errorf("%q: %v, want an error containing %q", ref, err, want.text)
			}
			continue
		}
		if err != nil || r.kind != want.kind || want.name != "" && r.name != want.name {
			t.Errorf("%q: %+v %v, want no error, kind = %v, name empty or name = %v", ref, r, err, want.kind, want.name)
			continue
		}
		if again, err := parseRef(r.name); err != nil || again.name != r.name || again.kind != r.kind {
			t.Errorf("%q: its name %q parses to %+v %v, want no error, name = %v, kind = %v", ref, r.name, again, err, r.name, r.kind)
		}
	}
}

// A cleaned name stays below the root, whatever it was.
func TestCleanNameStaysInside(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := strings.Join(rapid.SliceOf(rapid.SampledFrom([]string{"..", ".", "", "a", "/", "..a", "b..", "\\", "\x00", strings.Repeat("n", 256)})).Draw(t, "parts"), "/")
		got, err := cleanName(in)
		if err != nil {
			return
		}
		if filepath.IsAbs(got) || got != "" && !filepath.IsLocal(got) || slices.Contains(strings.Split(got, "/"), "..") || strings.ContainsRune(got, 0) {
			t.Errorf("%q becomes %q, want filepath.IsAbs(got) = false, got empty or filepath.IsLocal(got) = true, no part \"..\", strings.ContainsRune(got, 0) = false", in, got)
		}
	})
}
