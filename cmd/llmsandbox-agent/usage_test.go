//go:build linux

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestUsage(t *testing.T) {
	for _, c := range []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"version 2", map[string]string{
			"memory.current": "4096\n", "memory.peak": "8192\n", "cpu.stat": "usage_usec 1500\nuser_usec 1000\n",
		}, "memory 4096\npeak 8192\ncpu 1500000\n"},
		{"version 1", map[string]string{
			"memory/memory.usage_in_bytes": "4096\n", "memory/memory.max_usage_in_bytes": "8192\n", "cpuacct/cpuacct.usage": "1500000\n",
		}, "memory 4096\npeak 8192\ncpu 1500000\n"},
		{"a kernel without a peak", map[string]string{"memory.current": "1\n"}, "memory 1\n"},
		{"not understood", map[string]string{"memory.current": "max\n", "cpu.stat": "usage_usec -1\n"}, ""},
		{"none", nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range c.files {
				path := filepath.Join(dir, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			var out bytes.Buffer
			if err := writeUsage(&out, dir); err != nil || out.String() != c.want {
				t.Errorf("%q, %v; want %q", out.String(), err, c.want)
			}
		})
	}
}

// The first client may take longer than those that come back.
func TestFirstGrace(t *testing.T) {
	idle := func(u *users, within time.Duration) bool {
		select {
		case <-u.alone:
			return true
		case <-time.After(within):
			return false
		}
	}
	after := func(d time.Duration, do func()) stopper { return time.AfterFunc(d, do) }
	u := newUsers(flags{listen: "@x", grace: 0, firstGrace: 3600}, after)
	if idle(u, 50*time.Millisecond) {
		t.Fatal("the first client is not waited for: idle(u, 50*time.Millisecond) = true, want false")
	}
	first := u.enter()
	second := u.enter()
	first()
	if idle(u, 50*time.Millisecond) {
		t.Fatal("it ends under a client: idle(u, 50*time.Millisecond) = true, want false")
	}
	second()
	if !idle(u, 10*time.Second) {
		t.Error("it does not end after the last client: idle(u, 10*time.Second) = false, want true")
	}
	if u := newUsers(flags{listen: "@x", grace: 0}, after); !idle(u, 10*time.Second) {
		t.Error("without a grace of its own the first client is waited for: idle(u, 10*time.Second) = false, want true")
	}
}
