package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/artifact"
	"github.com/llmsandbox/llmsandbox/internal/plainjson"
	"github.com/llmsandbox/llmsandbox/internal/termpicture"
	"github.com/llmsandbox/llmsandbox/internal/termsafe"
)

// tellArtifacts writes what a run has produced into the directory that was asked for, or
// shows the pictures where the terminal can, or says that there is something.
func (f *runFlags) tellArtifacts(res *llmsandbox.Result) error {
	if res == nil {
		return nil
	}
	for _, why := range res.ArtifactsDropped {
		stderr.note("llmsandbox: " + termsafe.String(why))
	}
	switch {
	case len(res.Artifacts) == 0:
		return nil
	case f.artifacts != "":
		return writeArtifacts(f.artifacts, res.Artifacts)
	case f.json:
		return nil // it carries them
	}
	return showArtifacts(res.Artifacts)
}

// showArtifacts shows pictures on a terminal that takes them, and names the rest.
func showArtifacts(list []llmsandbox.Artifact) error {
	way := termpicture.None
	if isTerminal(os.Stdout) {
		way = termpicture.Detect(os.Getenv)
	}
	var rest []string
	for _, a := range list {
		if way != termpicture.None && (a.MIME == artifact.PNG || a.MIME == artifact.JPEG) {
			err := termpicture.Show(os.Stdout, way, a.Data)
			if err == nil {
				continue
			}
			if !errors.Is(err, termpicture.ErrNotShown) {
				return fmt.Errorf("show %s: %w", a.Name, err)
			}
		}
		rest = append(rest, termsafe.String(a.Name))
	}
	if len(rest) > 0 {
		stderr.note(fmt.Sprintf("llmsandbox: artifacts: %s (--artifacts DIR writes them)", strings.Join(rest, ", ")))
	}
	return nil
}

// writeArtifacts writes artifacts as files into a directory, which is made when missing,
// beside what is there.
func writeArtifacts(dir string, list []llmsandbox.Artifact) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("--artifacts: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("--artifacts: %w", err)
	}
	defer root.Close()
	for _, a := range list {
		name, err := writeNew(root, a.Name, artifact.Extension(a.MIME), a.Data)
		if err != nil {
			return fmt.Errorf("--artifacts: %w", err)
		}
		stderr.note("llmsandbox: artifact " + termsafe.String(filepath.Join(dir, name)+" "+about(a)))
		stem := strings.TrimSuffix(name, path.Ext(name))
		for _, form := range a.Also {
			if err := writeForm(root, dir, stem+artifact.Extension(form.MIME), form); err != nil {
				return err
			}
		}
		if a.Chart == nil {
			continue
		}
		text, err := plainjson.Marshal(a.Chart)
		if err != nil {
			return fmt.Errorf("--artifacts: the chart data of %s: %w", name, err)
		}
		if err := writeForm(root, dir, stem+".chart.json", artifact.Form{MIME: artifact.JSON, Data: append(text, '\n')}); err != nil {
			return err
		}
	}
	return nil
}

func writeForm(root *os.Root, dir, name string, form artifact.Form) error {
	name, err := writeNew(root, name, artifact.Extension(form.MIME), form.Data)
	if err != nil {
		return fmt.Errorf("--artifacts: %w", err)
	}
	stderr.note(fmt.Sprintf("llmsandbox: artifact %s (%s, %d bytes)", termsafe.String(filepath.Join(dir, name)), form.MIME, len(form.Data)))
	return nil
}

// about is what is known of an artifact, in brackets.
func about(a llmsandbox.Artifact) string {
	parts := []string{a.MIME}
	if a.Width > 0 && a.Height > 0 {
		parts = append(parts, fmt.Sprintf("%dx%d", a.Width, a.Height))
	}
	parts = append(parts, fmt.Sprintf("%d bytes", len(a.Data)))
	if a.Title != "" {
		parts = append(parts, fmt.Sprintf("%q", a.Title))
	}
	return "(" + strings.Join(parts, ", ") + ")"
}

// maxSameName bounds the search for a name that is free.
const maxSameName = 10000

// writeNew writes a file under a name that is not taken: name, or else name-2 and so on.
// A link is a name that is taken.
func writeNew(root *os.Root, name, ext string, data []byte) (string, error) {
	if path.Ext(name) == "" {
		name += ext
	}
	ext = path.Ext(name)
	stem := strings.TrimSuffix(name, ext)
	for n := 1; n <= maxSameName; n++ {
		if n > 1 {
			name = fmt.Sprintf("%s-%d%s", stem, n, ext)
		}
		file, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		_, err = file.Write(data)
		return name, errors.Join(err, file.Close())
	}
	return "", fmt.Errorf("%s: more than %d files have that name: %w", name, maxSameName, fs.ErrExist)
}
