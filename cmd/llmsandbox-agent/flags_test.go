//go:build linux

package main

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/llmsandbox/llmsandbox/internal/agentproto"
	"github.com/llmsandbox/llmsandbox/internal/guest/seed"
)

func TestParseFlags(t *testing.T) {
	got, err := parseFlags([]string{
		"--stdio", "--listen", "@name", "--token-env", "T", "--grace", "30", "--deadline", "1700000000123", "--idle", "1500",
		"--uid", "1", "--gid", "2", "--workdir", "/w", "--seccomp", "/f",
		"--rlimit", "nofile=10", "--rlimit", "2=unlimited",
		"--seed", "/a/=/b/c",
	})
	if err != nil {
		t.Fatal(err)
	}
	want := flags{
		stdio: true, listen: "@name", listenFD: -1, setupFD: -1, planFD: -1, proxyFD: -1, entranceFD: -1, tokenFD: -1, tokenEnv: "T", grace: 30,
		deadline: time.UnixMilli(1700000000123), idle: 1500 * time.Millisecond, uid: 1, gid: 2, workdir: "/w", seccomp: "/f",
		rlimits: []agentproto.Rlimit{{Resource: 7, Value: 10}, {Resource: 2, Value: math.MaxUint64}},
		seeds:   []seed.Pair{{Source: "/a", Target: "/b/c"}},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(flags{})); diff != "" {
		t.Errorf("differs (-want +got):\n%s", diff)
	}
}

func TestParseFlagsRefuses(t *testing.T) {
	for _, c := range []struct{ args, says string }{
		{"", "nothing to serve"},
		{"--stdio --nonsense 1", `unknown flag "--nonsense"`},
		{"--stdio --grace", "--grace needs a value"},
		{"--stdio --grace -1", "not a number"},
		{"--stdio --deadline 0", "milliseconds"},
		{"--stdio --deadline soon", "milliseconds"},
		{"--stdio --idle 0", "milliseconds"},
		{"--stdio --idle 9999999999999999", "milliseconds"},
		{"--stdio --rlimit nofile", "RESOURCE=VALUE"},
		{"--stdio --rlimit files=1", "nofile"},
		{"--stdio --rlimit 16=1", "nofile"},
		{"--stdio --rlimit core=-1", "unlimited"},
		{"--stdio --seed /a", "SOURCE=TARGET"},
		{"--stdio --seed a=/b", "absolute"},
		{"--stdio --token-env T", "go with --listen"},
		{"--listen /s --token-env T --token-fd 3", "not both"},
		{"--listen @s", "needs a token"},
		{"--listen /s --first-grace 9", "goes with --grace"},
		{"--stdio --grace 1 --first-grace 9", "not with --stdio"},
		{"--setup-fd 3", "go together"},
	} {
		_, err := parseFlags(strings.Fields(c.args))
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want an error containing %q", c.args, err, c.says)
		}
	}
}
