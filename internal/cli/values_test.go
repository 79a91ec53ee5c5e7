package cli

import (
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/internal/limit"
)

// A value that a flag refuses is answered with one that it takes.
func TestValues(t *testing.T) {
	readers := map[string]func(text string) error{
		"memory":  func(text string) error { _, err := sizeFlag("memory", text, limit.MinMemory); return err },
		"disk":    func(text string) error { _, err := sizeFlag("disk", text, limit.MinDisk); return err },
		"output":  func(text string) error { _, err := sizeFlag("output", text, 1); return err },
		"cpus":    func(text string) error { _, err := cpusFlag(text); return err },
		"pids":    func(text string) error { _, err := pidsFlag(text); return err },
		"timeout": func(text string) error { _, err := timeoutFlag("timeout", text); return err },
		"idle":    func(text string) error { _, err := durationFlag("idle", text); return err },
	}
	for _, c := range []struct{ flag, text, err string }{
		{"memory", "8m", "--memory 8m is too small: use at least 16m, or 'unlimited'"},
		{"memory", "5", "--memory 5 is too small: use at least 16m, or 'unlimited'"},
		{"memory", "0", "--memory 0 is too small: use at least 16m, or 'unlimited'"},
		{"memory", "-1", `--memory "-1": use a size such as 512m or 2g, or 'unlimited'`},
		{"memory", "lots", `--memory "lots": use a size such as 512m or 2g, or 'unlimited'`},
		{"memory", "9999999t", "--memory 9999999t is too large: use 'unlimited' for no limit"},
		{"memory", "16m", ""},
		{"memory", "unlimited", ""},
		{"memory", "", ""},
		{"disk", "1k", "--disk 1k is too small: use at least 1m, or 'unlimited'"},
		{"disk", "1m", ""},
		{"output", "0", "--output 0 is too small: use at least 1, or 'unlimited'"},
		{"output", "1", ""},
		{"cpus", "0.0001", "--cpus 0.0001 is too small: use at least 0.01, or 'unlimited'"},
		{"cpus", "0", "--cpus 0 is too small: use at least 0.01, or 'unlimited'"},
		{"cpus", "-1", "--cpus -1 is too small: use at least 0.01, or 'unlimited'"},
		{"cpus", "5000", "--cpus 5000 is too large: use at most 4096, or 'unlimited'"},
		{"cpus", "two", `--cpus "two": use a number such as 0.5 or 2, or 'unlimited'`},
		{"cpus", "nan", `--cpus "nan": use a number such as 0.5 or 2, or 'unlimited'`},
		{"cpus", "0.01", ""},
		{"cpus", "4096", ""},
		{"pids", "0", "--pids 0 is too small: use at least 1, or 'unlimited'"},
		{"pids", "-1", "--pids -1 is too small: use at least 1, or 'unlimited'"},
		{"pids", "99999999999", "--pids 99999999999 is too large: use at most 4194304, or 'unlimited'"},
		{"pids", "99999999999999999999", "--pids 99999999999999999999 is too large: use at most 4194304, or 'unlimited'"},
		{"pids", "1.5", `--pids "1.5": use a whole number such as 64, or 'unlimited'`},
		{"pids", "4194304", ""},
		{"timeout", "1ns", "--timeout 1ns is too small: use at least 1ms, or 'unlimited'"},
		{"timeout", "0", "--timeout 0 is too small: use at least 1ms, or 'unlimited'"},
		{"timeout", "-1", "--timeout -1 is too small: use at least 1ms, or 'unlimited'"},
		{"timeout", "99999999h", "--timeout 99999999h is too large: use at most 106751d, or 'unlimited'"},
		{"timeout", "soon", `--timeout "soon": use a duration such as 30s, 10m or 1d, or 'unlimited'`},
		{"timeout", "1ms", ""},
		{"timeout", "106751d", ""},
		{"idle", "7", `--idle "7": use a duration such as 30s, 10m or 1d`},
		{"idle", "0s", "--idle 0s is too small: use at least 1ms"},
		{"idle", "200000d", "--idle 200000d is too large: use at most 106751d"},
		{"idle", "7d", ""},
	} {
		got := ""
		if err := readers[c.flag](c.text); err != nil {
			got = err.Error()
		}
		if got != c.err {
			t.Errorf("--%s %q: got error %q, want %q", c.flag, c.text, got, c.err)
		}
	}
}

func TestTimeoutFlag(t *testing.T) {
	for in, want := range map[string]time.Duration{
		"": 0, "10": 10 * time.Second, "2.5": 2500 * time.Millisecond, "1m30s": 90 * time.Second, "1d": oneDay, "unlimited": llmsandbox.Unlimited,
	} {
		if got, err := timeoutFlag("timeout", in); got != want || err != nil {
			t.Errorf("timeoutFlag(%q) = %v, %v, want %v", in, got, err, want)
		}
	}
}

func TestParseDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"7d": 7 * oneDay, "0d": 0, "12h": 12 * time.Hour, "1h30m": 90 * time.Minute, "1d12h": 36 * time.Hour, "-1h": -time.Hour, "106751d": 106751 * oneDay,
	} {
		if got, err := parseDuration(text); err != nil || got != want {
			t.Errorf("parseDuration(%q) = %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"d", "-1d", "1d-1h", "1.5d", "7", "7x", "106752d", "106751d1h", "99999999d", "99999999h", "99999999999999999999h"} {
		if got, err := parseDuration(text); err == nil {
			t.Errorf("parseDuration(%q) = %v, want an error", text, got)
		}
	}
}
