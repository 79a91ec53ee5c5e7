package java

import (
	"archive/zip"
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/language/registries"
	"github.com/llmsandbox/llmsandbox/internal/trust"
)

// settingsFile is where Maven finds its repositories in a sandbox.
const settingsFile = registries.Dir + "/settings.xml"

var home = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`Maven home: ([^\x1b\n]+)`) })

// findRegistries are the mirrors and repositories of this machine's settings for Maven, and
// Maven's own repository where no mirror stands for it.
func findRegistries(ask language.Ask) (language.Registries, error) {
	var r language.Registries
	out, err := ask.Program("mvn", "--batch-mode", "--version")
	if err != nil {
		return r, fmt.Errorf("ask Maven where it is: %w", err)
	}
	m := home().FindSubmatch(out)
	if m == nil {
		return r, fmt.Errorf("%w: Maven does not tell where it is", registries.ErrConfiguration)
	}
	dir := strings.TrimSpace(string(m[1]))
	var s settings
	for _, file := range []string{path.Join(ask.Home, ".m2/settings.xml"), path.Join(dir, "conf/settings.xml")} {
		if err := s.read(ask, file); err != nil {
			return r, err
		}
	}
	if !s.mirrored("central") {
		url, err := central(ask, dir)
		if err != nil {
			return r, err
		}
		if _, err := registries.Add(&r, url); err != nil {
			return r, fmt.Errorf("repository of Maven: %w", err)
		}
	}
	text, err := s.sandboxed(&r)
	if err != nil {
		return r, err
	}
	r.Files = []language.File{{Path: settingsFile, Data: text, Mode: 0o644}}
	trusted, err := registries.Trust(&r, ask)
	if trusted {
		// A JVM reads no certificates in PEM form.
		last := &r.Files[len(r.Files)-1]
		for _, f := range trust.Files(registries.Dir, nil, last.Data) {
			if f.Path == trust.JavaStore(registries.Dir) {
				*last = language.File{Path: f.Path, Data: f.Data, Mode: 0o644}
			}
		}
	}
	return r, err
}

// trustFlags let a JVM find the trust store among the files.
func trustFlags(r language.Registries) []string {
	store := trust.JavaStore(registries.Dir)
	if slices.ContainsFunc(r.Files, func(f language.File) bool { return f.Path == store }) {
		return trust.JavaFlags(store)
	}
	return nil
}

// central reads from Maven's own archives which repository it uses when nothing is said.
func central(ask language.Ask, dir string) (string, error) {
	out, err := ask.Program("find", path.Join(dir, "lib"), "-maxdepth", "1", "-name", "maven-model-builder*.jar", "-o", "-name", "maven-impl-*.jar")
	if err != nil {
		return "", fmt.Errorf("look for Maven's own repository: %w", err)
	}
	for _, file := range strings.Fields(string(out)) {
		data, err := ask.File(file)
		if err != nil {
			return "", fmt.Errorf("look for Maven's own repository: %w", err)
		}
		archive, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return "", fmt.Errorf("look for Maven's own repository: %w", err)
		}
		f, err := archive.Open("org/apache/maven/model/pom-4.0.0.xml")
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("look for Maven's own repository: %w", err)
		}
		var pom struct {
			Repositories []repository `xml:"repositories>repository"`
		}
		err = xml.NewDecoder(io.LimitReader(f, 1<<20)).Decode(&pom)
		f.Close()
		if err == nil && len(pom.Repositories) > 0 {
			return pom.Repositories[0].URL, nil
		}
	}
	return "", fmt.Errorf("%w: Maven does not tell its own repository: set a mirror of central in its settings", registries.ErrConfiguration)
}
