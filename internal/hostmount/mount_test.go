package hostmount

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/backend"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]backend.Mount{
		"data:/data":           {Source: "data", Target: "/data", Mode: "ro"},
		"/a:/b:ro":             {Source: "/a", Target: "/b", Mode: "ro"},
		"/a:/b:cow":            {Source: "/a", Target: "/b", Mode: "cow"},
		"/a:/b/":               {Source: "/a", Target: "/b", Mode: "ro"},
		"a:b:/c":               {Source: "a:b", Target: "/c", Mode: "ro"},
		"/a:/b:/c:cow":         {Source: "/a:/b", Target: "/c", Mode: "cow"},
		`C:\data:/data`:        {Source: `C:\data`, Target: "/data", Mode: "ro"},
		"ro:/ro:ro":            {Source: "ro", Target: "/ro", Mode: "ro"},
		"/a b:/b":              {Source: "/a b", Target: "/b", Mode: "ro"},
		"/a:/../etc":           {Source: "/a", Target: "/../etc", Mode: "ro"}, // Check refuses it
		"./with:colon:/b:cow":  {Source: "./with:colon", Target: "/b", Mode: "cow"},
		"/a:/":                 {Source: "/a", Target: "/", Mode: "ro"},
		"/data:/sandbox/d:cow": {Source: "/data", Target: "/sandbox/d", Mode: "cow"},
	} {
		if got, err := Parse(text); err != nil || got != want {
			t.Errorf("Parse(%q) = %+v, %v, want %+v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"": "use HOST:SANDBOX", "data": "use HOST:SANDBOX", "/data": "use HOST:SANDBOX", ":/data": "use HOST:SANDBOX", "data:": "use HOST:SANDBOX",
		"data:data": "use HOST:SANDBOX", "a:b:ro": "use HOST:SANDBOX", ":/b:ro": "use HOST:SANDBOX", "/a:/b:rw": "copy files in and out",
		"/a:/b:RO": "use ro or cow", "/a:/b:": "use", "/a:/b:ro:cow": "use HOST:SANDBOX",
	} {
		if got, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%q) = %+v, %v, want an error with %q", text, got, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"data:/data", "/a:/b:cow", "a:b:/c:rw", ":::", "/a:/", "\x00:/\x00:ro"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := Parse(text)
		if err != nil {
			return
		}
		if m.Source == "" || !strings.HasPrefix(m.Target, "/") || m.Mode != backend.MountReadOnly && m.Mode != backend.MountCopyOnWrite {
			t.Errorf("Parse(%q) = %+v", text, m)
		}
		again, err := Parse(fmt.Sprintf("%s:%s:%s", m.Source, m.Target, m.Mode))
		if err != nil || again != m && !strings.HasSuffix(m.Target, "/") {
			t.Errorf("%+v is parsed again as %+v, %v", m, again, err)
		}
		m.Source = "/source"
		if Check([]backend.Mount{m}, nil) == nil {
			for _, dir := range append(hidden, "/..") {
				if within(m.Target, dir) || within(dir, m.Target) {
					t.Errorf("a mount at %q is allowed, want none that hides %s", m.Target, dir)
				}
			}
			if m.Target != filepath.Clean(m.Target) {
				t.Errorf("a mount at %q is allowed, want a clean path", m.Target)
			}
		}
	})
}

func TestCheck(t *testing.T) {
	for _, target := range []string{"/data", "/sandbox/data", "/home/me", "/opt/data", "/mnt/a/b", "/tmpdata", "/usrlocal", "/data/é"} {
		if err := Check([]backend.Mount{{Source: "/a", Target: target}}, nil); err != nil {
			t.Errorf("at %s: %v, want no error", target, err)
		}
	}
	for _, target := range []string{"", "/", "data", "./data", "/sandbox", "/sandbox/", "/sandbox/../etc", "/sandbox/..", "//data", "/a//b", "/a/./b", "/proc", "/proc/1", "/sys/x",
		"/dev", "/dev/shm", "/tmp", "/tmp/x", "/usr/local/x", "/bin/sh", "/lib64", "/etc/passwd", "/opt", "/opt/toolchains/python", "/.llmsandbox", "/.llmsandbox/agent",
		"/a b", "/a\tb", "/a\nb", "/a\x00", "/a:b", "/a,b", `/a\b`, "/\u202e"} {
		if err := Check([]backend.Mount{{Source: "/a", Target: target}}, nil); !errors.Is(err, backend.ErrInvalid) {
			t.Errorf("at %q: %v, want backend.ErrInvalid", target, err)
		}
	}
	ok := backend.Mount{Source: "/a", Target: "/data"}
	layers := []backend.Layer{{Target: "/sandbox/.cache/x/"}}
	for name, mounts := range map[string][]backend.Mount{
		"twice":           {ok, ok},
		"inside":          {ok, {Source: "/b", Target: "/data/b"}},
		"around":          {{Source: "/b", Target: "/data/b"}, ok},
		"a layer":         {{Source: "/a", Target: "/sandbox/.cache/x"}},
		"around a layer":  {{Source: "/a", Target: "/sandbox/.cache"}},
		"inside a layer":  {{Source: "/a", Target: "/sandbox/.cache/x/y"}},
		"relative source": {{Source: "a", Target: "/data"}},
		"no source":       {{Target: "/data"}},
		"NUL":             {{Source: "/a\x00", Target: "/data"}},
		"rw":              {{Source: "/a", Target: "/data", Mode: "rw"}},
		"unknown mode":    {{Source: "/a", Target: "/data", Mode: "x"}},
		"many":            make([]backend.Mount, Max+1),
	} {
		if err := Check(mounts, layers); !errors.Is(err, backend.ErrInvalid) {
			t.Errorf("%s: %v, want backend.ErrInvalid", name, err)
		}
	}
	if err := Check([]backend.Mount{ok, {Source: "/a", Target: "/data2", Mode: "cow"}}, layers); err != nil {
		t.Errorf("side by side: %v, want no error", err)
	}
}

func TestCheckKept(t *testing.T) {
	for _, dir := range []string{"/sandbox", "/sandbox/x", "/srv/project", "/usr/src/app", "/tmp/x", "/opt", "/home", "/procedure"} {
		if err := CheckKept(dir); err != nil {
			t.Errorf("%q: %v", dir, err)
		}
	}
	for _, dir := range []string{"", "/", "srv", "/srv/", "/srv/../etc", "/srv//x", "/proc", "/proc/1", "/dev/shm", "/sys", "/a b", "/a\nb", "/a:b", "/a\x00"} {
		if err := CheckKept(dir); !errors.Is(err, backend.ErrInvalid) {
			t.Errorf("%q: %v, want backend.ErrInvalid", dir, err)
		}
	}
}

func TestCheckWorkdir(t *testing.T) {
	mounts := []backend.Mount{{Source: "/a", Target: "/data/set"}}
	for _, dir := range []string{"", "/sandbox", "/srv/project", "/home/user", "/workspace", "/root", "/data", "/data/other"} {
		if err := CheckWorkdir(dir, mounts); err != nil {
			t.Errorf("%q: %v", dir, err)
		}
	}
	for _, dir := range []string{
		"/", "srv", "/srv/", "/srv/../etc", "/srv//x", "/etc", "/etc/x", "/usr/local", "/tmp", "/tmp/x", "/proc/1", "/dev/shm", "/sys", "/opt", "/opt/toolchains/x", "/var", "/run", "/home",
		"/sandbox/x", "/a b", "/a\nb", "/a:b", "/a\x00", "/data/set", "/data/set/x", "/.llmsandbox",
	} {
		if err := CheckWorkdir(dir, mounts); !errors.Is(err, backend.ErrInvalid) {
			t.Errorf("%q: %v, want backend.ErrInvalid", dir, err)
		}
	}
}
