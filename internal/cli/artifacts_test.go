package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/artifact"
)

func TestWriteArtifacts(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside")
	dir := filepath.Join(t.TempDir(), "new", "folder")
	list := []llmsandbox.Artifact{
		{Name: "a.png", MIME: artifact.PNG, Data: []byte("1"), Chart: &artifact.Chart{Title: "T"}},
		{Name: "a.png", MIME: artifact.PNG, Data: []byte("2")},
		{Name: "table.html", MIME: artifact.HTML, Data: []byte("3"), Also: []artifact.Form{{MIME: artifact.CSV, Data: []byte("4")}}},
		{Name: "plain", MIME: artifact.Text, Data: []byte("5")},
	}
	for range 2 {
		if err := writeArtifacts(dir, list); err != nil {
			t.Fatal(err)
		}
		// A link that waits for the next one to be written.
		if err := os.Symlink(outside, filepath.Join(dir, "plain-2.txt")); err != nil && !os.IsExist(err) {
			t.Fatal(err)
		}
	}
	want := map[string]string{
		"a.png": "1", "a-2.png": "2", "a-3.png": "1", "a-4.png": "2", "a.chart.json": "{\"title\":\"T\",\"axes\":null}\n", "a-3.chart.json": "{\"title\":\"T\",\"axes\":null}\n",
		"table.html": "3", "table-2.html": "3", "table.csv": "4", "table-2.csv": "4", "plain.txt": "5", "plain-3.txt": "5",
	}
	for name, text := range want {
		if got, err := os.ReadFile(filepath.Join(dir, name)); string(got) != text || err != nil {
			t.Errorf("%s: %q, %v, want got = %v, no error", name, got, err, text)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != len(want)+1 {
		t.Errorf("%v, %v, want no error, len(entries) = %v", entries, err, len(want)+1)
	}
	if _, err := os.Stat(outside); err == nil {
		t.Error("a link was followed: got no error, want an error")
	}
	for _, name := range []string{"../evil", "/etc/evil"} {
		if err := writeArtifacts(dir, []llmsandbox.Artifact{{Name: name, MIME: artifact.Text}}); err == nil {
			t.Errorf("%q was written, want an error", name)
		}
	}
	titled := llmsandbox.Artifact{MIME: artifact.PNG, Width: 3, Height: 2, Title: `A "title"`}
	if got := about(titled); got != `(image/png, 3x2, 0 bytes, "A \"title\"")` {
		t.Errorf("%q, want \"(image/png, 3x2, 0 bytes, \\\"A \\\\\\\"title\\\\\\\"\\\")\"", got)
	}
}
