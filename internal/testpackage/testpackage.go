// Package testpackage makes small packages for tests, in directories that libraries are
// installed from without any registry.
package testpackage

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
)

// Wheel makes a wheel of pure Python in dir. files are its modules, by their path in
// site-packages; scripts are entry points, as in "tiny=tiny:main".
func Wheel(t testing.TB, dir, name, version string, files map[string]string, scripts ...string) {
	t.Helper()
	info := name + "-" + version + ".dist-info/"
	all := map[string]string{
		info + "METADATA": fmt.Sprintf("Metadata-Version: 2.1\nName: %s\nVersion: %s\n", name, version),
		info + "WHEEL":    "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
	}
	if len(scripts) > 0 {
		points := "[console_scripts]\n"
		for _, s := range scripts {
			points += s + "\n"
		}
		all[info+"entry_points.txt"] = points
	}
	for path, text := range files {
		all[path] = text
	}
	record := info + "RECORD,,\n"
	for _, path := range sorted(all) {
		record += path + ",,\n"
	}
	all[info+"RECORD"] = record
	create(t, filepath.Join(dir, name+"-"+version+"-py3-none-any.whl"), func(w io.Writer) error {
		z := zip.NewWriter(w)
		for _, path := range sorted(all) {
			header := zip.FileHeader{Name: path, Method: zip.Deflate}
			if strings.Contains(path, ".data/scripts/") {
				header.SetMode(0o755)
			}
			f, err := z.CreateHeader(&header)
			if err != nil {
				return err
			}
			if _, err := io.WriteString(f, all[path]); err != nil {
				return err
			}
		}
		return z.Close()
	})
}

// SDist makes a source package of Python in dir. When it is built, which needs no other
// package, the function build of code runs, and returns the built package's modules: a
// dictionary from paths in site-packages to their text.
func SDist(t testing.TB, dir, name, version, code string) {
	t.Helper()
	top := name + "-" + version + "/"
	tarball(t, filepath.Join(dir, name+"-"+version+".tar.gz"), map[string]string{
		top + "PKG-INFO":         fmt.Sprintf("Metadata-Version: 2.1\nName: %s\nVersion: %s\n", name, version),
		top + "pyproject.toml":   "[build-system]\nrequires = []\nbuild-backend = \"test_backend\"\nbackend-path = [\".\"]\n",
		top + "test_backend.py":  fmt.Sprintf(backend, name, version),
		top + "test_building.py": code,
	})
}

// backend builds a wheel with nothing but the standard library.
const backend = `import os, zipfile
name, version = %q, %q
def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    import test_building
    files = dict(test_building.build())
    info = name + "-" + version + ".dist-info/"
    files[info + "METADATA"] = "Metadata-Version: 2.1\nName: " + name + "\nVersion: " + version + "\n"
    files[info + "WHEEL"] = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files[info + "RECORD"] = "".join(path + ",,\n" for path in files) + info + "RECORD,,\n"
    wheel = name + "-" + version + "-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(wheel_directory, wheel), "w") as z:
        for path, text in files.items():
            z.writestr(path, text)
    return wheel
`

// NPM makes an npm package in dir. files are its files besides package.json.
func NPM(t testing.TB, dir, name, version string, files map[string]string) {
	t.Helper()
	all := map[string]string{"package/package.json": fmt.Sprintf(`{"name": %q, "version": %q, "main": "index.js"}`, name, version)}
	for path, text := range files {
		all["package/"+path] = text
	}
	tarball(t, filepath.Join(dir, name+"-"+version+".tgz"), all)
}

func tarball(t testing.TB, path string, files map[string]string) {
	t.Helper()
	create(t, path, func(w io.Writer) error {
		gz := gzip.NewWriter(w)
		tw := tar.NewWriter(gz)
		for _, name := range sorted(files) {
			if err := tw.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(files[name]))}); err != nil {
				return err
			}
			if _, err := io.WriteString(tw, files[name]); err != nil {
				return err
			}
		}
		if err := tw.Close(); err != nil {
			return err
		}
		return gz.Close()
	})
}

func create(t testing.TB, path string, write func(io.Writer) error) {
	t.Helper()
	f, err := os.Create(path)
	if err == nil {
		err = write(f)
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		t.Fatalf("make package %s: %v", filepath.Base(path), err)
	}
}

func sorted(files map[string]string) []string {
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}
