package nsinit

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

func samplePlan() *Plan {
	return &Plan{
		Hostname: "sandbox", Workdir: "/sandbox", SetIDs: true, CodeUID: 1000, CodeGID: 1000,
		Seccomp: []byte{1, 2, 3}, LandlockRead: []string{"/"}, LandlockWrite: []string{"/tmp", "/sandbox"},
		Rlimits: []Rlimit{{Resource: 2, Value: 1 << 40}}, HideUptime: true,
		Steps: []Step{
			{Op: OpFilesystem, Path: "/", Source: "tmpfs", Options: []string{"mode=755"}, Attr: 7},
			{Op: OpFile, Path: "/f", Data: []byte("x"), Mode: 0o644, UID: 1, GID: 2, FD: 3, Optional: true},
		},
	}
}

func TestRoundTrip(t *testing.T) {
	p := samplePlan()
	b, err := p.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, p) {
		t.Errorf("got %+v, sent %+v", got, p)
	}
	for n := range b {
		if _, err := Decode(b[:n]); !errors.Is(err, errPlan) {
			t.Fatalf("the first %d of %d bytes: %v, want %v", n, len(b), err, errPlan)
		}
	}
	if _, err := Decode(append(b, 0)); !errors.Is(err, errPlan) {
		t.Errorf("a byte too many: %v, want %v", err, errPlan)
	}
}

func TestEncodeRefuses(t *testing.T) {
	for name, change := range map[string]func(*Plan){
		"a relative path":   func(p *Plan) { p.Steps[1].Path = "x" },
		"an unknown step":   func(p *Plan) { p.Steps[1].Op = 99 },
		"a long string":     func(p *Plan) { p.Hostname = strings.Repeat("x", maxString+1) },
		"a large plan":      func(p *Plan) { p.Steps[1].Data = make([]byte, maxPlan) },
		"very many steps":   func(p *Plan) { p.Steps = make([]Step, maxSteps+1) },
		"many rlimits":      func(p *Plan) { p.Rlimits = make([]Rlimit, 65) },
		"very many strings": func(p *Plan) { p.LandlockRead = make([]string, maxStrings+1) },
	} {
		p := samplePlan()
		change(p)
		if _, err := p.Encode(); err == nil {
			t.Errorf("%s is accepted, want an error", name)
		}
	}
}

func TestReply(t *testing.T) {
	want := Reply{Exposed: 3, StartDir: true}
	if got, err := DecodeReply(encodeReply(want, nil)); err != nil || got != want {
		t.Errorf("%+v arrives as %+v, %v", want, got, err)
	}
	long := errors.New(strings.Repeat("x", 2*MaxReply))
	if _, err := DecodeReply(encodeReply(Reply{}, long)); err == nil || len(err.Error()) != MaxReply-1 {
		t.Errorf("a long error arrives as %v, want an error, len(err.Error()) = %v", err, MaxReply-1)
	}
	for _, b := range [][]byte{nil, {1}, {2, 'x'}, {0}, {0, 255, 255, 255, 255, 0}, {0, 0, 0, 0, 0, 2}, {0, 0, 2}, {0, 255, 255, 3, 0}, {0, 128, 0, 0}, {0, 0, 0, 0, 0, 0, 0}, make([]byte, MaxReply+1)} {
		if _, err := DecodeReply(b); err == nil {
			t.Errorf("%v is taken for success, want an error", b)
		}
	}
}

func FuzzDecode(f *testing.F) {
	b, err := samplePlan().Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte{})
	f.Add([]byte{255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := Decode(b)
		if err != nil {
			return
		}
		again, err := p.Encode()
		if err != nil {
			t.Fatalf("a decoded plan cannot be encoded: %v", err)
		}
		if string(again) != string(b) {
			t.Fatalf("%x became %x, want again = %q", b, again, string(b))
		}
	})
}

func FuzzDecodeReply(f *testing.F) {
	f.Add(encodeReply(Reply{Exposed: 2}, nil))
	f.Add(encodeReply(Reply{}, errors.New("mount: no")))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := DecodeReply(b)
		if err == nil && string(encodeReply(r, nil)) != string(b) {
			t.Errorf("%x is decoded as %+v, want an error or the same bytes when it is encoded again", b, r)
		}
	})
}
