package transfer

import (
	"archive/tar"
	"bytes"
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// archive makes a tar stream of members whose content is zeros.
func archive(headers ...tar.Header) []byte {
	var b bytes.Buffer
	tw := tar.NewWriter(&b)
	for _, h := range headers {
		tw.WriteHeader(&h)
		tw.Write(make([]byte, h.Size))
	}
	tw.Close()
	return b.Bytes()
}

// unpack extracts a tar stream into a directory.
func unpack(t testing.TB, data []byte, dir string, o Options) (Result, error) {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	var res Result
	err = extract(bytes.NewReader(data), root, o.withDefaults(), &res)
	return res, err
}

func writeFile(t testing.TB, path, data string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(data), 0o644); err != nil {
		t.Fatal(err)
	}
}

func readFile(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
