package backendtest

import (
	"maps"
	"slices"
	"testing"
)

// Runtimes that collect garbage must do so before the sandbox's memory is full.
func (s *suite) programGarbage(t *testing.T) {
	programs := map[string]string{
		"javascript": `
let live = []
for (let r = 0; r < 6; r++) { const next = []; for (let i = 0; i < 7e5; i++) next.push({ i, s: 'x' + i + r, a: [i, r] }); live = next }
console.log(live.length)
`,
		"java": `
import java.util.*;
class Garbage { public static void main(String[] a) {
  List<int[]> live = null;
  for (int r = 0; r < 20; r++) { live = new ArrayList<>(); for (int i = 0; i < 700000; i++) live.add(new int[32]); }
  System.out.println(live.size());
} }
`,
		"go": `package main
import "fmt"
func main() {
	var live [][]byte
	for r := 0; r < 10; r++ { live = nil; for i := 0; i < 700000; i++ { live = append(live, make([]byte, 128)) } }
	fmt.Println(len(live))
}
`,
	}
	languages := slices.Sorted(maps.Keys(programs))
	sandboxes := s.openings(t, ofLanguages(languages))
	for i, lang := range languages {
		t.Run(lang, func(t *testing.T) {
			wantLines(t, run(t, sandboxes.use(t, i, hellos[lang].program), programs[lang], nil), "700000")
		})
	}
}
