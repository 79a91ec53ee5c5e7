package backendtest

import (
	"testing"

	"github.com/llmsandbox/llmsandbox"
)

// Runtimes that collect garbage must do so before the sandbox's memory is full.
func (s *suite) programGarbage(t *testing.T) {
	for lang, code := range map[string]string{
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
	} {
		t.Run(lang, func(t *testing.T) {
			wantLines(t, run(t, s.openWith(t, llmsandbox.Options{Language: lang}, hellos[lang].program), code, nil), "700000")
		})
	}
}
