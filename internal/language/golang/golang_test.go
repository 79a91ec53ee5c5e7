package golang

import (
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

// TestRareCollection: only builds collect garbage rarely, within half of the sandbox's memory. Programs have
// the environment that they would have without.
func TestRareCollection(t *testing.T) {
	src := language.Source{Code: []byte("package main"), RunID: "r", Workdir: "/w", TempDir: "/tmp", Program: func(names ...string) string { return names[0] }}
	for memory, want := range map[int64]string{0: "", 512 << 20: "GOGC=800 GOMEMLIMIT=268435456"} {
		src.MemoryLimit = memory
		p, err := plan(src)
		if err != nil {
			t.Fatal(err)
		}
		build, program := p.Steps[0], p.Steps[1]
		var got []string
		for _, kv := range build.Env {
			if strings.HasPrefix(kv, "GOGC=") || strings.HasPrefix(kv, "GOMEMLIMIT=") {
				got = append(got, kv)
			}
		}
		if strings.Join(got, " ") != want || len(program.Env) != 0 {
			t.Errorf("with %d bytes of memory the build has %q and the program %q, want %q and nothing", memory, got, program.Env, want)
		}
	}
}
