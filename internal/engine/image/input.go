package image

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
)

const (
	// dockerfileName is what the Dockerfile is called in what the engine gets. It is
	// named by the .dockerignore there, so that COPY does not take it along.
	dockerfileName = ".llmsandbox-dockerfile"
	ignoreName     = ".dockerignore"

	maxDockerfile     = 1 << 20
	maxContextBytes   = 2 << 30
	maxContextEntries = 500_000
)

// errChanged: the files of a build changed between being looked at and being sent.
var errChanged = errors.New("a file changed while it was read: build again when nothing writes to the context")

// fixedTime is the time of all files in a build, so that equal files are an equal build.
// Zip files, and with them Python packages, cannot hold a time before 1980.
var fixedTime = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// An input is all that goes into one build.
type input struct {
	build      Build
	dockerfile []byte
	root       *os.Root // of the context; nil: none
	ignoreText []byte   // of the context's .dockerignore
	hasIgnore  bool
	ignore     ignore
}

func (b Build) input() (_ *input, err error) {
	in := &input{build: b}
	defer func() {
		if err != nil {
			in.close()
		}
	}()
	if b.Context != "" {
		if in.root, err = os.OpenRoot(b.Context); err != nil {
			return nil, fmt.Errorf("%w: the build's context must be a folder: %w", backend.ErrInvalid, err)
		}
	}
	switch {
	case b.Content != "" && b.Dockerfile != "":
		return nil, fmt.Errorf("%w: only one of a Dockerfile's path and its content can be given", backend.ErrInvalid)
	case b.Content != "":
		in.dockerfile = []byte(b.Content)
	case b.Dockerfile != "":
		in.dockerfile, err = readSmall(os.Open(b.Dockerfile))
	case in.root != nil:
		in.dockerfile, err = readSmall(openRegular(in.root, "Dockerfile"))
	default:
		return nil, fmt.Errorf("%w: neither a Dockerfile nor a context is given", backend.ErrInvalid)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: the Dockerfile cannot be read: %w", backend.ErrInvalid, err)
	}
	if len(bytes.TrimSpace(in.dockerfile)) == 0 {
		return nil, fmt.Errorf("%w: the Dockerfile is empty", backend.ErrInvalid)
	}
	return in, in.readIgnore()
}

func (in *input) readIgnore() error {
	if in.root == nil {
		return nil
	}
	text, err := readSmall(openRegular(in.root, ignoreName))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil {
		in.ignoreText, in.hasIgnore = text, true
		in.ignore, err = parseIgnore(text)
	}
	if err != nil {
		return fmt.Errorf("%w: %s: %w", backend.ErrInvalid, filepath.Join(in.build.Context, ignoreName), err)
	}
	return nil
}

func (in *input) close() {
	if in.root != nil {
		in.root.Close()
	}
}

// readSmall reads a file that was opened, and closes it.
func readSmall(f *os.File, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxDockerfile+1))
	if err == nil && len(data) > maxDockerfile {
		err = fmt.Errorf("%s has over %d bytes", f.Name(), maxDockerfile)
	}
	return data, err
}

// digest names the build by all that goes in: what is sent, and what it is asked for.
func (in *input) digest(ctx context.Context) ([]byte, error) {
	h := sha256.New()
	if err := in.send(ctx, h); err != nil {
		return nil, err
	}
	return h.Sum(nil), nil
}

// sendAs is send for a build that was given that digest.
func (in *input) sendAs(ctx context.Context, w io.Writer, sum []byte) error {
	h := sha256.New()
	if err := in.send(ctx, &tee{body: w, all: h}); err != nil {
		return err
	}
	if !bytes.Equal(h.Sum(nil), sum) {
		return errChanged
	}
	return nil
}

// A tee splits what only names the build from what is sent.
type tee struct{ body, all io.Writer }

func (t *tee) Write(p []byte) (int, error) {
	if n, err := t.body.Write(p); err != nil {
		return n, err
	}
	return t.all.Write(p)
}

// send writes the tar that the engine builds from. For the digest, the other parts of
// the request come first.
func (in *input) send(ctx context.Context, w io.Writer) error {
	all := w
	if t, ok := w.(*tee); ok {
		all = t.all
	}
	b := in.build
	fmt.Fprintf(all, "%q %q", b.Target, b.Platform) // a digest takes everything
	for _, m := range []map[string]string{b.Args, b.Labels} {
		fmt.Fprintf(all, "\n%d", len(m))
		for _, k := range slices.Sorted(maps.Keys(m)) {
			fmt.Fprintf(all, " %q=%q", k, m[k])
		}
	}
	t := tar.NewWriter(w)
	if err := in.sendOwn(t); err != nil {
		return err
	}
	if in.root != nil {
		if err := in.sendContext(ctx, t); err != nil {
			return err
		}
	}
	return t.Close()
}

// sendOwn sends the files that the builder itself reads.
func (in *input) sendOwn(t *tar.Writer) error {
	hide := slices.Clone(in.ignoreText)
	if !in.hasIgnore {
		hide = append(hide, ignoreName...)
	}
	hide = append(hide, "\n"+dockerfileName+"\n"...)
	for _, f := range []struct {
		name string
		data []byte
	}{{dockerfileName, in.dockerfile}, {ignoreName, hide}} {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: 0o644, Size: int64(len(f.data)), ModTime: fixedTime}
		if err := t.WriteHeader(h); err != nil {
			return err
		}
		if _, err := t.Write(f.data); err != nil {
			return err
		}
	}
	return nil
}
