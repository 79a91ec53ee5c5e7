// Package transfer copies files and directories between the host and a sandbox.
//
// What comes out of a sandbox is hostile: only regular files and directories are
// taken, below the destination, from one open directory to the next, so that neither a
// name nor a link that is there already leads elsewhere. File times are not kept,
// either way: what arrives is new there, and a build tool must not trust times
// that come with what it builds.
package transfer

import (
	"archive/tar"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/agentclient"
	"github.com/llmsandbox/llmsandbox/internal/agentproto"
	"github.com/llmsandbox/llmsandbox/internal/tarcheck"
)

// Guest is what copying needs of a sandbox; *[agentclient.Client] is one.
type Guest interface {
	Stat(ctx context.Context, path string) (agentproto.FileInfo, error)
	TarOut(ctx context.Context, path, prefix string, w io.Writer) (agentproto.TarResult, error)
	TarIn(ctx context.Context, dir string, r io.Reader, l agentclient.TarLimits) (agentproto.TarResult, error)
}

// ErrNoSafeContent: there was nothing that may be copied. It wraps fs.ErrNotExist.
var ErrNoSafeContent = fmt.Errorf("no safe content found: %w", fs.ErrNotExist)

// copyBuffer is the size of the pieces that content is copied in.
const copyBuffer = 256 << 10

// Defaults of the limits.
const (
	DefaultMaxBytes = 4 << 30
	DefaultMaxFiles = 1 << 20
)

// Options bound one copy. Zero means the default.
type Options struct {
	MaxBytes int64 // bytes of content
	MaxFiles int64 // files and directories
}

func (o Options) withDefaults() Options {
	if o.MaxBytes <= 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	if o.MaxFiles <= 0 {
		o.MaxFiles = DefaultMaxFiles
	}
	return o
}

// A Result reports what a copy did, also when it failed halfway.
type Result struct {
	Files   int64    // regular files
	Bytes   int64    // bytes of their content
	Skipped []string // what was left out, each with its reason, at most 100
}

const maxSkipped = 100

func (r *Result) skip(what string) {
	if len(r.Skipped) < maxSkipped {
		r.Skipped = append(r.Skipped, what)
	}
}

// safeMode drops setuid, setgid, sticky and others' write permission.
func safeMode(mode int64) int64 { return mode&0o777&^0o022 | 0o600 }

// hasDotDot reports whether a path has a component "..".
func hasDotDot(path string) bool {
	return slices.Contains(strings.Split(path, "/"), "..")
}

// packer makes a tar stream of a file or a directory's content on the host.
type packer struct {
	src  string
	root *os.Root // src opened, when it is a directory
	name string   // of the one member, when it is a file
	o    Options

	tw           *tar.Writer
	buf          []byte
	files, bytes int64
}

func special(path string) error {
	return fmt.Errorf("%w: %q is neither a regular file nor a folder", tarcheck.ErrUnsafe, path)
}

// check refuses a directory before anything of it is written.
func (p *packer) check(ctx context.Context, res *Result) error {
	var files, bytes int64
	return p.walk(ctx, func(name string, d fs.DirEntry) error {
		switch {
		case d.Type()&fs.ModeSymlink != 0:
			res.skip(fmt.Sprintf("%q: symbolic link", name))
			return nil
		case d.Type().IsRegular():
			info, err := d.Info()
			if err != nil {
				return err
			}
			bytes += info.Size()
		case !d.IsDir():
			return special(path.Join(p.src, name))
		}
		if strings.Count(name, "/") >= tarcheck.MaxDepth {
			return fmt.Errorf("%w: %.200q lies deeper than %d directories", tarcheck.ErrTooLarge, name, tarcheck.MaxDepth)
		}
		files++
		return p.within(files, bytes)
	})
}

func (p *packer) within(files, bytes int64) error {
	if files > p.o.MaxFiles || bytes > p.o.MaxBytes {
		return fmt.Errorf("%w: the limits are %d files and folders, and %d bytes", tarcheck.ErrTooLarge, p.o.MaxFiles, p.o.MaxBytes)
	}
	return nil
}

// walk visits what is in the directory, a directory before its content. (fs.WalkDir refuses
// names that are not UTF-8.)
func (p *packer) walk(ctx context.Context, visit func(name string, d fs.DirEntry) error) error {
	return p.walkDir(ctx, ".", "", visit)
}

func (p *packer) walkDir(ctx context.Context, dir, prefix string, visit func(name string, d fs.DirEntry) error) error {
	f, err := p.root.Open(dir)
	if err != nil {
		return err
	}
	entries, err := f.ReadDir(-1)
	f.Close() // was only read
	if err != nil {
		return err
	}
	for _, d := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		name := prefix + d.Name()
		if err := visit(name, d); err != nil {
			return err
		}
		if d.IsDir() {
			if err := p.walkDir(ctx, name, name+"/", visit); err != nil {
				return err
			}
		}
	}
	return nil
}

// pack writes the tar stream, within the limits: what check saw may have grown.
func (p *packer) pack(ctx context.Context, w io.Writer) error {
	p.tw, p.buf = tar.NewWriter(w), make([]byte, copyBuffer)
	var err error
	if p.root == nil {
		var f *os.File
		if f, err = os.OpenFile(p.src, openFlags, 0); err == nil {
			err = p.file(f, p.name)
		}
	} else {
		err = p.walk(ctx, p.entry)
	}
	if err != nil {
		return err
	}
	return p.tw.Close()
}

func (p *packer) entry(name string, d fs.DirEntry) error {
	switch {
	case d.IsDir():
		info, err := d.Info()
		if err != nil {
			return err
		}
		p.files++
		if err := p.within(p.files, p.bytes); err != nil {
			return err
		}
		return p.tw.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: safeMode(int64(info.Mode().Perm())) | 0o700})
	case !d.Type().IsRegular():
		return nil // a link, which check reported
	}
	f, err := p.root.OpenFile(name, openFlags, 0)
	if err != nil {
		return err
	}
	return p.file(f, name)
}

// file packs one file, which it closes, without the host's owner names.
func (p *packer) file(f *os.File, name string) error {
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return special(f.Name())
	}
	p.files++
	p.bytes += info.Size()
	if err := p.within(p.files, p.bytes); err != nil {
		return err
	}
	h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: info.Size(), Mode: safeMode(int64(info.Mode().Perm()))}
	if err := p.tw.WriteHeader(h); err != nil {
		return err
	}
	n, err := io.CopyBuffer(p.tw, io.LimitReader(f, info.Size()), p.buf)
	if err == nil && n < info.Size() {
		err = fmt.Errorf("%q shrank while it was copied: %w", f.Name(), io.ErrUnexpectedEOF)
	}
	return err
}
