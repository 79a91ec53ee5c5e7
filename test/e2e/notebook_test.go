package e2e

import (
	"archive/zip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestNotebook runs the notebook of examples from its first cell to its last.
func TestNotebook(t *testing.T) {
	requireGo(t)
	const path = "/usr/local/bin:/usr/bin:/bin"
	find := exec.Command("sh", "-c", "python3 -c 'import numpy, pandas, matplotlib' && python3 -m pip --version")
	find.Env = append(os.Environ(), "PATH="+path)
	if out, err := find.CombinedOutput(); err != nil {
		if os.Getenv("LLMSANDBOX_REQUIRE") == "1" {
			t.Fatalf("the system's Python has not what the notebook needs: %v\n%s", err, out)
		}
		t.Skip("the system's Python has not what the notebook needs (make test-deps)")
	}
	cmd := exec.CommandContext(testContext(t), "go", "run", "./examples/notebook", "-path", path, "-wheels", wheels(t))
	cmd.Dir = "../.."
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, stderr.String())
	}
	cells := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(cells) != 40 {
		t.Errorf("%d cells, want 40", len(cells))
	}
	for i, cell := range cells {
		ended := "  ok"
		switch i + 1 {
		case 29:
			ended = "  error KeyError"
		case 31:
			ended = "  timeout"
		}
		if !strings.Contains(cell, ended) {
			t.Errorf("%s; want%s", cell, ended)
		}
	}
	for cell, end := range map[int]string{
		8: "= 303", 10: "= (302, 3)", 17: "= ['east', 'north', 'south', 'west']", 25: "= 12",
		26: "-> figure-1.png", 27: "-> figure-2.png", 28: "-> figure-3.png", 30: "= True", 32: "= True",
		35: "= ['North', 'South']", 37: "= 'awaited'", 38: "-> clean.csv",
	} {
		if cell <= len(cells) && !strings.HasSuffix(cells[cell-1], end) {
			t.Errorf("%s; want it to end in %q", cells[cell-1], end)
		}
	}
	if t.Failed() {
		t.Log(regexp.MustCompile(`(?m)^`).ReplaceAllString(stderr.String(), "  "))
	}
}

// wheels makes a directory with the wheel of a library.
func wheels(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "tidyname-1.0-py3-none-any.whl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := zip.NewWriter(f)
	for name, content := range map[string]string{
		"tidyname.py":                     "def tidy(name):\n    return name.strip().title()\n",
		"tidyname-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: tidyname\nVersion: 1.0\n",
		"tidyname-1.0.dist-info/WHEEL":    "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
		"tidyname-1.0.dist-info/RECORD":   "",
	} {
		entry, err := w.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := entry.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}
