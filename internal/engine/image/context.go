package image

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"

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
	ignore     *patternmatcher.PatternMatcher // nil: none
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

// openRegular opens a file below root. It neither follows a link out of it nor waits for
// a FIFO.
func openRegular(root *os.Root, name string) (*os.File, error) {
	info, err := root.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New("not a regular file")}
	}
	return root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // Windows ignores it
}

// sendContext sends what the directory has and its .dockerignore does not exclude.
func (in *input) sendContext(ctx context.Context, t *tar.Writer) error {
	limit := cmp.Or(in.build.MaxContext, maxContextBytes)
	var size, count int64
	return fs.WalkDir(in.root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return fmt.Errorf("%w: read the build's context: %w", backend.ErrInvalid, err)
		case name == "." || name == ignoreName:
			return nil
		case name == dockerfileName:
			return fmt.Errorf("%w: the build's context has a file %s, which is the name the Dockerfile is sent under: rename it or ignore it", backend.ErrInvalid, name)
		}
		if in.ignore != nil {
			switch out, err := in.ignore.MatchesOrParentMatches(name); {
			case err != nil:
				return fmt.Errorf("%w: %s: %w", backend.ErrInvalid, ignoreName, err)
			case out && d.IsDir() && !in.ignore.Exclusions():
				return fs.SkipDir
			case out:
				return nil
			}
		}
		info, err := d.Info()
		if err != nil {
			return fmt.Errorf("%w: read the build's context: %w", backend.ErrInvalid, err)
		}
		if count++; count > maxContextEntries {
			return fmt.Errorf("%w: the build's context has over %d files: name what is not needed in %s", backend.ErrInvalid, maxContextEntries, ignoreName)
		}
		if info.Mode().IsRegular() {
			if size += info.Size(); size > limit {
				return fmt.Errorf("%w: the build's context has over %d bytes: name what is not needed in %s", backend.ErrInvalid, limit, ignoreName)
			}
		}
		return in.sendEntry(t, name, info)
	})
}

func (in *input) sendEntry(t *tar.Writer, name string, info fs.FileInfo) error {
	h := &tar.Header{Name: name, Mode: int64(info.Mode().Perm()), ModTime: fixedTime}
	switch mode := info.Mode(); {
	case mode.IsDir():
		h.Typeflag, h.Name = tar.TypeDir, name+"/"
		return t.WriteHeader(h)
	case mode&fs.ModeSymlink != 0:
		to, err := in.root.Readlink(name)
		if err != nil {
			return fmt.Errorf("%w: read the build's context: %w", backend.ErrInvalid, err)
		}
		h.Typeflag, h.Linkname = tar.TypeSymlink, to
		return t.WriteHeader(h)
	case !mode.IsRegular():
		return nil
	}
	f, err := openRegular(in.root, name)
	if err != nil {
		return fmt.Errorf("%w: read the build's context: %w", backend.ErrInvalid, err)
	}
	defer f.Close()
	h.Typeflag, h.Size = tar.TypeReg, info.Size()
	if err := t.WriteHeader(h); err != nil {
		return err
	}
	n, err := io.Copy(t, io.LimitReader(f, h.Size))
	if err != nil {
		return fmt.Errorf("send %s of the build's context: %w", name, err)
	}
	if n != h.Size {
		return fmt.Errorf("%s: %w", name, errChanged)
	}
	return nil
}

// maxPatterns bounds a .dockerignore.
const maxPatterns = 10_000

// parseIgnore reads a .dockerignore.
func parseIgnore(text []byte) (*patternmatcher.PatternMatcher, error) {
	patterns, err := ignorefile.ReadAll(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	if len(patterns) > maxPatterns {
		return nil, fmt.Errorf("it has over %d patterns", maxPatterns)
	}
	for _, p := range patterns {
		// A matcher finds some faults of a pattern only when it uses it.
		one, err := patternmatcher.New([]string{strings.TrimPrefix(p, "!")})
		if err == nil {
			_, err = one.MatchesOrParentMatches("x")
		}
		if err != nil {
			return nil, fmt.Errorf("pattern %q is not valid: %w", p, err)
		}
	}
	return patternmatcher.New(patterns)
}
