package trust

import (
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/testcert"
)

func TestFiles(t *testing.T) {
	ours, system, other := testcert.NewAuthority(t), testcert.NewAuthority(t), testcert.NewAuthority(t)
	bundle := append([]byte("# a comment\n"), system.PEM...)
	bundle = append(bundle, "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\nnonsense\n"...)
	bundle = append(bundle, other.PEM...)
	files := Files("/x", ours.PEM, bundle)
	got := map[string][]byte{}
	for _, f := range files {
		got[f.Path] = f.Data
	}
	want := bytes.Join([][]byte{ours.PEM, system.PEM, other.PEM}, nil)
	if !bytes.Equal(got["/x/ca.pem"], ours.PEM) || !bytes.Equal(got["/x/ca-bundle.pem"], want) {
		t.Errorf("%s, want %s\n%s", got["/x/ca.pem"], ours.PEM, got["/x/ca-bundle.pem"])
	}
	for _, kv := range Env("/x") {
		if _, at, _ := strings.Cut(kv, "="); got[at] == nil {
			t.Errorf("%s names no file, want got[at] not nil", kv)
		}
	}
	if b := Files("/x", ours.PEM, nil); !bytes.Equal(b[1].Data, ours.PEM) {
		t.Errorf("without a system's bundle the authority stands alone: %.300q, want bytes.Equal(b[1].Data, ours.PEM) = true", b[1].Data)
	}
}

// keytool, which comes with every JDK, must read the store.
func TestJavaStore(t *testing.T) {
	keytool, err := exec.LookPath("keytool")
	if err != nil {
		if os.Getenv("LLMSANDBOX_REQUIRE") != "" {
			t.Fatal(err)
		}
		t.Skip("keytool, of a Java runtime, is not here")
	}
	a, b := testcert.NewAuthority(t), testcert.NewAuthority(t)
	var ders [][]byte
	for _, text := range [][]byte{a.PEM, b.PEM} {
		block, _ := pem.Decode(text)
		ders = append(ders, block.Bytes)
	}
	store := filepath.Join(t.TempDir(), "ca.jks")
	if err := os.WriteFile(store, javaStore(ders), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(keytool, "-list", "-keystore", store, "-storetype", "JKS", "-storepass", storePassword).CombinedOutput()
	if err != nil || strings.Count(string(out), "trustedCertEntry") != 2 {
		t.Errorf("%v, want no error, strings.Count(string(out), \"trustedCertEntry\") = 2\n%s", err, out)
	}
}

// TestSystem: the first bundle that is there is the system's, one that cannot be read is no
// reason to take another, and an empty one is one.
func TestSystem(t *testing.T) {
	denied := errors.New("denied")
	for name, c := range map[string]struct {
		files map[string][]byte
		fails string
		want  string
		found bool
		err   error
	}{
		"none":           {},
		"the first":      {files: map[string][]byte{systemBundles[0]: []byte("a"), systemBundles[1]: []byte("b")}, want: "a", found: true},
		"another":        {files: map[string][]byte{systemBundles[2]: []byte("c")}, want: "c", found: true},
		"an empty one":   {files: map[string][]byte{systemBundles[0]: nil, systemBundles[1]: []byte("b")}, found: true},
		"one that fails": {files: map[string][]byte{systemBundles[1]: []byte("b")}, fails: systemBundles[0], err: denied},
	} {
		t.Run(name, func(t *testing.T) {
			got, found, err := System(func(at string) ([]byte, error) {
				b, there := c.files[at]
				switch {
				case at == c.fails:
					return nil, denied
				case !there:
					return nil, fmt.Errorf("%s: %w", at, fs.ErrNotExist)
				}
				return b, nil
			})
			if string(got) != c.want || found != c.found || !errors.Is(err, c.err) {
				t.Errorf("%q, %v, %v, want got = %v, found = %v, %v", got, found, err, c.want, c.found, c.err)
			}
		})
	}
}
