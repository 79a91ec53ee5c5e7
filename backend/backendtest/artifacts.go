package backendtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
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
	"typescript": "import { writeFileSync } from 'node:fs'\nconst name: string = '/sandbox/artifacts/made.csv'\nwriteFileSync(name, 'a,b\\n1,2\\n')",
	"java":       `public class Maker { public static void main(String[] a) throws Exception { java.nio.file.Files.writeString(java.nio.file.Path.of("artifacts/made.csv"), "a,b\n1,2\n"); } }`,
	"cpp":        "#include <fstream>\nint main() { std::ofstream(\"artifacts/made.csv\") << \"a,b\\n1,2\\n\"; }",
	"c":          "#include <stdio.h>\nint main(void) { FILE *f = fopen(\"artifacts/made.csv\", \"w\"); fputs(\"a,b\\n1,2\\n\", f); return fclose(f); }",
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

// artifactsOfAttachedRuns has another handle take over the processes of runs: it gets what
// the runs produce, before and after, and the handle that began them gets none of it.
func (s *suite) artifactsOfAttachedRuns(t *testing.T) {
	ctx := testContext(t)
	sb := s.open(t, llmsandbox.Options{Language: "bash"})
	attach := func(t *testing.T, o llmsandbox.ArtifactOptions) *llmsandbox.Sandbox {
		t.Helper()
		other, err := llmsandbox.Attach(ctx, sb.ID(), &llmsandbox.AttachOptions{Backend: s.Backend, Artifacts: o})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = other.Close() })
		return other
	}
	// take begins a run, has other attach to it before it goes on, and returns its end.
	take := func(t *testing.T, other *llmsandbox.Sandbox, o *llmsandbox.RunOptions) *llmsandbox.Result {
		t.Helper()
		in, input := io.Pipe()
		defer input.Close()
		out := newReply()
		defer out.close()
		ran := make(chan error, 1)
		began := llmsandbox.RunOptions{Stdin: in, Stdout: out}
		if o != nil {
			began.Artifacts, began.KeepChildren = o.Artifacts, o.KeepChildren
		}
		const code = `mkdir -p artifacts; cd artifacts; echo first > first.txt
for dir in /tmp/.llmsandbox-*/capture; do
	[ -d "$dir" ] || continue
	echo page > "$dir/000001.data"; echo '{"name":"page.html","mime":"text/html","source":"test"}' > "$dir/000001.json"
done
echo begun; read line; echo second > second.txt; exit 7`
		go func() {
			res, err := sb.Run(ctx, code, &began)
			if !errors.Is(err, llmsandbox.ErrDetached) || len(res.Artifacts) > 0 || len(res.ArtifactsDropped) > 0 {
				err = fmt.Errorf("%w, artifacts %q, left out %q; want ErrDetached and none", err, artifactNames(res.Artifacts), res.ArtifactsDropped)
			} else {
				err = nil
			}
			ran <- err
		}()
		out.want(t, "begun")
		infos, err := other.Processes(ctx)
		// One that has ended is there until the end has reached who waited for it, which may be after that knows.
		infos = slices.DeleteFunc(infos, func(i llmsandbox.ProcessInfo) bool { return !i.Running })
		if err != nil || len(infos) != 1 {
			t.Fatalf("processes %+v, %v; want the run's", infos, err)
		}
		p, err := other.AttachProcess(ctx, infos[0].ID, &llmsandbox.AttachOutput{Stdin: strings.NewReader("go on\n")})
		if err != nil {
			t.Fatal(err)
		}
		if err := <-ran; err != nil {
			t.Errorf("the handle that began the run: %v", err)
		}
		res := wait(t, p)
		wantExit(t, res, 7)
		slices.SortFunc(res.Artifacts, func(a, b llmsandbox.Artifact) int { return strings.Compare(a.Name, b.Name) })
		return res
	}
	wantNone := func(t *testing.T) {
		t.Helper()
		if got, dropped := sb.Artifacts(); len(got) > 0 || len(dropped) > 0 {
			t.Errorf("the first handle has %q, left out %q; want none", artifactNames(got), dropped)
		}
	}
	other := attach(t, llmsandbox.ArtifactOptions{})
	t.Run("all", func(t *testing.T) {
		res := take(t, other, nil)
		wantArtifacts(t, res, "first.txt", "page.html", "second.txt")
		if got, _ := other.Artifacts(); len(got) != 3 {
			t.Errorf("the handle has %q, want the run's", artifactNames(got))
		}
		wantNone(t)
		left := run(t, sb, `ls -A /tmp | grep -c '^[.]llmsandbox-'`, &llmsandbox.RunOptions{Artifacts: &llmsandbox.ArtifactOptions{Off: true}})
		wantStdout(t, left, "0\n")
	})
	t.Run("children", func(t *testing.T) {
		wantArtifacts(t, take(t, other, &llmsandbox.RunOptions{KeepChildren: true}), "first.txt", "page.html", "second.txt")
		wantNone(t)
		// The process may go on to use what is there.
		wantStdout(t, wait(t, start(t, sb, "ls -d /tmp/.llmsandbox-*/capture | wc -l; rm -rf /tmp/.llmsandbox-*", nil)), "1\n")
	})
	t.Run("bounds", func(t *testing.T) {
		res := take(t, attach(t, llmsandbox.ArtifactOptions{MaxCount: 1}), nil)
		if len(res.Artifacts) != 1 || len(res.ArtifactsDropped) == 0 {
			t.Errorf("artifacts %q, left out %q; want one, and the others said to be left out", artifactNames(res.Artifacts), res.ArtifactsDropped)
		}
	})
	t.Run("off", func(t *testing.T) {
		wantArtifacts(t, take(t, other, &llmsandbox.RunOptions{Artifacts: &llmsandbox.ArtifactOptions{Off: true}}))
		wantArtifacts(t, take(t, attach(t, llmsandbox.ArtifactOptions{Off: true}), nil))
	})
}
