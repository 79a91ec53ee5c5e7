//go:build unix

package kerneltest

import (
	"slices"
	"sort"
	"strings"
	"testing"
)

func output(t *testing.T, k *Kernel, c Cells) {
	if e := k.MustRun(c.Stderr); !strings.Contains(e.Stderr, "careful") || e.Stdout != "" {
		t.Errorf("got %q %q, want Stderr containing \"careful\", Stdout empty", e.Stdout, e.Stderr)
	}
	e := k.MustRun(c.Child)
	lines := strings.Fields(e.Stdout)
	if !slices.Contains(lines, "child") || !strings.Contains(e.Stderr, "fault") {
		t.Errorf("a child printed %q %q, want lines containing \"child\", Stderr containing \"fault\"", e.Stdout, e.Stderr)
	}
	sort.Strings(lines)
	// 3 is the directory that ls reads.
	if slices.Contains(lines, "4") && !c.Leaks {
		t.Errorf("a child has descriptors %q, want lines without \"4\" or Leaks true", lines)
	}
}

func input(t *testing.T, k *Kernel, c Cells) {
	if c.Input == "" {
		return
	}
	k.Input = []string{"Ann"}
	if e := k.MustRun(c.Input); e.Value["text/plain"] != c.InputIs || len(k.Prompts) != 1 || k.Prompts[0] != c.Prompt || e.Status != "ok" {
		t.Errorf("got %q, asked %q, want e.Value[\"text/plain\"] = %v, len(k.Prompts) = 1, k.Prompts[0] = %v, Status = \"ok\"", e.Value, k.Prompts, c.InputIs, c.Prompt)
	}
	k.Input = []string{"Zoë \"€\" \\ 😀"}
	if e := k.MustRun(c.Input); !strings.Contains(e.Value["text/plain"], "Zoë") {
		t.Errorf("got %q, want it to contain \"Zoë\"", e.Value)
	}
	if e := k.Run(c.Input); e.Status != "ok" && e.Status != "error" {
		t.Errorf("without input: %+v, want Status = \"ok\" or Status = \"error\"", e)
	}
}
