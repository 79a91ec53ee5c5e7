package backendtest

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/artifact"
)

// artifactNames are the names of a result's artifacts, in their order.
func artifactNames(list []llmsandbox.Artifact) (names []string) {
	for _, a := range list {
		names = append(names, a.Name)
	}
	return names
}

// wantArtifacts checks which artifacts a run has produced, and that none was left out.
func wantArtifacts(t testing.TB, res *llmsandbox.Result, names ...string) {
	t.Helper()
	if got := artifactNames(res.Artifacts); !slices.Equal(got, names) || len(res.ArtifactsDropped) > 0 {
		t.Fatalf("artifacts %q, want %q; left out: %q\nstdout: %s\nstderr: %s", got, names, res.ArtifactsDropped, clip(res.Stdout), clip(res.Stderr))
	}
}

// writers write a file into the artifacts directory, which is there.
var writers = map[string]string{
	"javascript": `require("fs").writeFileSync("/sandbox/artifacts/made.csv", "a,b\n1,2\n")`,
	"java":       `public class Maker { public static void main(String[] a) throws Exception { java.nio.file.Files.writeString(java.nio.file.Path.of("artifacts/made.csv"), "a,b\n1,2\n"); } }`,
	"cpp":        "#include <fstream>\nint main() { std::ofstream(\"artifacts/made.csv\") << \"a,b\\n1,2\\n\"; }",
	"go":         "package main\nimport \"os\"\nfunc main() { if err := os.WriteFile(\"/sandbox/artifacts/made.csv\", []byte(\"a,b\\n1,2\\n\"), 0o600); err != nil { panic(err) } }",
	"ruby":       `File.write("artifacts/made.csv", "a,b\n1,2\n")`,
	"bash":       `printf 'a,b\n1,2\n' > /sandbox/artifacts/made.csv`,
}

func (s *suite) acceptance59FilesOfEveryLanguage(t *testing.T) {
	languages := slices.Sorted(maps.Keys(writers))
	sandboxes := s.openings(t, ofLanguages(languages))
	for i, lang := range languages {
		t.Run(lang, func(t *testing.T) {
			sb := sandboxes.use(t, i, hellos[lang].program)
			res := run(t, sb, writers[lang], nil)
			wantExit(t, res, 0)
			wantArtifacts(t, res, "made.csv")
			if a := res.Artifacts[0]; a.MIME != artifact.CSV || string(a.Data) != "a,b\n1,2\n" || a.Source != "file" {
				t.Errorf("%+v, want MIME = CSV, Data = \"a,b\\n1,2\\n\", Source = \"file\"", a)
			}
			wantStdout(t, res, "")
			if again := run(t, sb, hellos[lang].code, nil); len(again.Artifacts) > 0 {
				t.Errorf("a run that made nothing has %q, want none", artifactNames(again.Artifacts))
			}
		})
	}
}

// acceptance51FilesOfEachRun has runs in one sandbox: each result has what that run made
// or changed, whatever times the files bear, and the sandbox has all of it.
func (s *suite) acceptance51FilesOfEachRun(t *testing.T) {
	sb := s.open(t, llmsandbox.Options{Language: "bash"})
	bash := func(code string, o *llmsandbox.RunOptions) *llmsandbox.Result {
		t.Helper()
		res := run(t, sb, "cd artifacts\n"+code, o)
		wantExit(t, res, 0)
		return res
	}
	wantArtifacts(t, bash(`echo one > one.txt; mkdir -p sub; echo two > sub/two.txt; touch -d 1980-01-01 sub/two.txt`, nil), "one.txt", "two.txt")
	wantArtifacts(t, bash(`cat one.txt > /dev/null`, nil))
	// The order is that of the kernel's times, and its clock ticks up to 10 ms apart.
	wantArtifacts(t, bash(`echo again > one.txt; sleep 0.05; echo old > ../old; touch -d 1980-01-01 ../old; mv ../old moved.txt`, nil), "one.txt", "moved.txt")
	if got, dropped := sb.Artifacts(); len(got) != 4 || len(dropped) > 0 {
		t.Errorf("the sandbox has %q, without %q, want len(got) = 4, no dropped", artifactNames(got), dropped)
	}
	sb.ClearArtifacts()
	wantArtifacts(t, bash(`echo x > not-seen.txt`, &llmsandbox.RunOptions{Artifacts: &llmsandbox.ArtifactOptions{Off: true}}))
	wantArtifacts(t, bash(`echo x > last.txt`, nil), "last.txt")
	if got, _ := sb.Artifacts(); len(got) != 1 {
		t.Errorf("after the clearing the sandbox has %q, want len(got) = 1", artifactNames(got))
	}
	left := run(t, sb, `ls -A /tmp | grep -c '^[.]llmsandbox-'`, nil)
	wantStdout(t, left, "1\n") // its own
}

// artifactsOfAKilledRun has a run that reaches its timeout, and one that is cancelled.
func (s *suite) artifactsOfAKilledRun(t *testing.T) {
	sb := s.open(t, llmsandbox.Options{Language: "bash"})
	const code = `echo made > artifacts/made.txt; echo ready; exec sleep 600`
	res := run(t, sb, code, &llmsandbox.RunOptions{Timeout: 5 * time.Second})
	wantStatus(t, res, llmsandbox.StatusTimeout)
	wantArtifacts(t, res, "made.txt")

	ctx, cancel := context.WithCancel(testContext(t))
	defer cancel()
	res, err := sb.Run(ctx, code, &llmsandbox.RunOptions{Stdout: writerFunc(cancel)})
	if err == nil {
		t.Fatalf("a cancelled run: %+v, want an error", res)
	}
	wantArtifacts(t, res, "made.txt")
}
