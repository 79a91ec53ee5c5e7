package hostmount

import (
	"errors"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/backend"
)

func TestParseVolume(t *testing.T) {
	for text, want := range map[string]backend.VolumeMount{
		"a:/data":     {Name: "a", Target: "/data"},
		"a:/data/":    {Name: "a", Target: "/data"},
		"a:/data:ro":  {Name: "a", Target: "/data", ReadOnly: true},
		"A b:/../etc": {Name: "A b", Target: "/../etc"}, // CheckVolumes refuses it
		"a:/b:rw":     {Name: "a", Target: "/b:rw"},     // as that
		"a:/":         {Name: "a", Target: "/"},
	} {
		if got, err := ParseVolume(text); err != nil || got != want {
			t.Errorf("ParseVolume(%q) = %+v, %v, want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "a", "a:", ":/data", "a:data", "/data", "a:ro", "a::ro"} {
		if got, err := ParseVolume(text); err == nil || !strings.Contains(err.Error(), "use NAME:SANDBOX") {
			t.Errorf("ParseVolume(%q) = %+v, %v, want an error that says how", text, got, err)
		}
	}
}

func FuzzParseVolume(f *testing.F) {
	for _, text := range []string{"a:/data", "a:/b:ro", ":::", "a:/", "\x00:/\x00:ro", "a:/sandbox/../etc"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, err := ParseVolume(text)
		if err != nil || CheckVolumes([]backend.VolumeMount{v}, nil, nil, "") != nil {
			return
		}
		if strings.ContainsAny(v.Name, "/\\\x00 ") || v.Name == "." || v.Name == ".." || len(v.Name) > maxVolumeName {
			t.Errorf("the name %q is allowed", v.Name)
		}
		for _, dir := range append(hidden, "/..") {
			if within(v.Target, dir) || within(dir, v.Target) {
				t.Errorf("a volume at %q is allowed, want none that hides %s", v.Target, dir)
			}
		}
	})
}

func TestCheckVolumes(t *testing.T) {
	at := func(target string) []backend.VolumeMount {
		return []backend.VolumeMount{{Name: "a", Target: target}}
	}
	mounts := []backend.Mount{{Source: "/a", Target: "/data"}}
	layers := []backend.Layer{{Target: "/sandbox/.cache/x/"}}
	for _, volumes := range [][]backend.VolumeMount{nil, at("/sandbox/a"), at("/a"), {{Name: "a", Target: "/a"}, {Name: "a", Target: "/b", ReadOnly: true}}} {
		if err := CheckVolumes(volumes, mounts, layers, "/work"); err != nil {
			t.Errorf("%+v: %v, want no error", volumes, err)
		}
	}
	for name, volumes := range map[string][]backend.VolumeMount{
		"a mount":        at("/data"),
		"in a mount":     at("/data/x"),
		"around a mount": {{Name: "a", Target: "/x"}, {Name: "b", Target: "/x/y"}},
		"a layer":        at("/sandbox/.cache/x"),
		"workdir":        at("/work"),
		"sandbox":        at("/sandbox"),
		"tmp":            at("/tmp/x"),
		"relative":       at("x"),
		"colon":          at("/x:rw"),
		"name":           {{Name: "../a", Target: "/a"}},
		"no name":        {{Target: "/a"}},
		"many":           make([]backend.VolumeMount, Max),
	} {
		if err := CheckVolumes(volumes, mounts, layers, "/work"); !errors.Is(err, backend.ErrInvalid) {
			t.Errorf("%s: %v, want backend.ErrInvalid", name, err)
		}
	}
}

func TestCheckVolumeName(t *testing.T) {
	for _, name := range []string{"a", "0", "a-b_c.d", strings.Repeat("a", maxVolumeName)} {
		if err := CheckVolumeName(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"", ".", "..", ".a", "-a", "_a", "A", "a/b", "a b", "a\x00", "é", "a\n", strings.Repeat("a", maxVolumeName+1)} {
		if err := CheckVolumeName(name); !errors.Is(err, backend.ErrInvalid) {
			t.Errorf("%q: %v, want backend.ErrInvalid", name, err)
		}
	}
}
