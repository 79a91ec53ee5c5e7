package python

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

func TestReadLock(t *testing.T) {
	a, b := strings.Repeat("a", 64), strings.Repeat("b", 64)
	const head = "lock-version = \"1.0\"\ncreated-by = \"uv\"\n"
	pkg := func(name, version, rest string) string {
		return fmt.Sprintf("[[packages]]\nname = %q\nversion = %q\n%s\n", name, version, rest)
	}
	wheel := func(size int, digest string) string {
		return fmt.Sprintf("{ url = \"https://a.test/x.whl\", size = %d, hashes = { sha256 = %q } }", size, digest)
	}
	small, large := "wheels = ["+wheel(1, a)+"]", "wheels = ["+wheel(2, b)+", "+wheel(9, a)+", "+wheel(9, a)+"]"
	for name, c := range map[string]struct {
		lock string
		want []language.Package
		err  bool
	}{
		"large ones first": {lock: head + pkg("six", "1.17.0", small) + pkg("torch", "2.1.0+cpu", large), want: []language.Package{
			{Name: "torch", Version: "2.1.0+cpu", SHA256: []string{a, b}}, {Name: "six", Version: "1.17.0", SHA256: []string{a}},
		}},
		"a wheel and a source":     {lock: head + pkg("six", "1.0", small+"\nsdist = "+wheel(1, b)), want: []language.Package{{Name: "six", Version: "1.0", SHA256: []string{a}}}},
		"nothing":                  {lock: head},
		"a source":                 {lock: head + pkg("six", "1.0", small) + pkg("seven", "1.0", "sdist = "+wheel(1, a))},
		"another digest":           {lock: head + pkg("six", "1.0", `wheels = [{ url = "https://a.test/x.whl", hashes = { md5 = "00" } }]`)},
		"one without a digest":     {lock: head + pkg("six", "1.0", `wheels = [`+wheel(1, a)+`, { url = "https://a.test/x.whl" }]`)},
		"no version":               {lock: head + "[[packages]]\nname = \"six\"\n" + small},
		"a name twice":             {lock: head + pkg("six", "1.0", small) + pkg("six", "2.0", small)},
		"an option":                {lock: head + pkg("--six", "1.0", small)},
		"lines in a version":       {lock: head + pkg("six", "1.0\n-r /etc/passwd", small)},
		"a range":                  {lock: head + pkg("six", "1.*", small)},
		"digests that are options": {lock: head + pkg("six", "1.0", "wheels = ["+wheel(1, a[1:]+" -r x")+"]")},
		"too many":                 {lock: head + strings.Repeat(pkg("six", "1.0", small), maxLocked+1)},
		"another type":             {lock: head + "packages = 1", err: true},
		"no TOML":                  {lock: "<html>", err: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := readLock([]byte(c.lock))
			same := slices.EqualFunc(got, c.want, func(a, b language.Package) bool {
				return a.Name == b.Name && a.Version == b.Version && slices.Equal(a.SHA256, b.SHA256)
			})
			if !same || (err != nil) != c.err {
				t.Errorf("%+v, %v, want %+v, error: %v", got, err, c.want, c.err)
			}
		})
	}
}

func FuzzReadLock(f *testing.F) {
	f.Add([]byte("[[packages]]\nname = \"six\"\nversion = \"1.0\"\nwheels = [{ size = 1, hashes = { sha256 = \"" + strings.Repeat("a", 64) + "\" } }]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		packages, _ := readLock(data)
		for _, p := range packages {
			if err := checkPackage(p); err != nil || len(p.SHA256) == 0 {
				t.Errorf("%+v: %v, want a valid package with digests", p, err)
			}
		}
	})
}
