//go:build unix

package java

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/kerneltest"
)

// TestArchive: javac takes its classes from the archive, and says the same whatever the archive is.
func TestArchive(t *testing.T) {
	kerneltest.Need(t, &Language, "javac")
	dir := t.TempDir()
	fill := slices.Clone(Language.Caches[0].Fill[0].Argv)
	fill[slices.Index(fill, archiveDir)] = dir
	if out, err := exec.Command(fill[0], fill[1:]...).CombinedOutput(); err != nil || len(out) > 0 {
		t.Fatalf("fill: %v\n%s", err, out)
	}
	made := filepath.Join(dir, "javac.jsa")
	if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || !slices.Equal(left, []string{made}) {
		t.Fatalf("the directory has %q, %v, want only %s", left, err, made)
	}
	junk, classes, loaded := filepath.Join(dir, "junk.jsa"), t.TempDir(), filepath.Join(t.TempDir(), "loaded")
	if err := os.WriteFile(junk, []byte(strings.Repeat("junk", 10000)), 0o600); err != nil {
		t.Fatal(err)
	}
	source := filepath.Join(t.TempDir(), "Main.java")
	for name, code := range map[string]string{
		"good":    "public class Main { public static void main(String[] a) { System.out.println(1); } }",
		"a note":  "public class Main { java.util.List<String> l = new java.util.ArrayList(); }",
		"no type": "public class Main { Missing m; int f() { return \"\"; } }",
		"broken":  "public class Main {",
	} {
		if err := os.WriteFile(source, []byte(code), 0o600); err != nil {
			t.Fatal(err)
		}
		javac := func(options ...string) string {
			out, err := exec.Command("javac", slices.Concat(options, compiler, []string{"-d", classes, source})...).CombinedOutput()
			if err != nil {
				out = append(out, err.Error()...)
			}
			return string(out)
		}
		want := javac()
		for _, at := range []string{made, junk, filepath.Join(dir, "none.jsa")} {
			options := append(slices.Clone(archive("/tmp")), "-J-Xlog:class+load:file="+loaded)
			for i := range options {
				options[i] = strings.Replace(options[i], archiveDir+"/javac.jsa", at, 1)
			}
			if got := javac(options...); got != want {
				t.Errorf("%s with %s: %q, want %q", name, filepath.Base(at), got, want)
			}
			log, err := os.ReadFile(loaded)
			if used := strings.Contains(string(log), "com.sun.tools.javac.main.Main source: shared objects file"); err != nil || used != (at == made) {
				t.Errorf("%s with %s: classes of the archive: %v, %v, want %v", name, filepath.Base(at), used, err, at == made)
			}
		}
	}
}
