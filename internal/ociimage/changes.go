package ociimage

import (
	"archive/tar"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
)

// A Tree is what the layers of an image make together: names, owners and contents, for comparing.
type Tree struct{ files map[string]treeFile }

// A treeFile is a file, directory or link of a Tree. Set-id bits are not part of its mode.
type treeFile struct {
	kind     byte // as in a tar; hard links are what they link to
	mode     int64
	uid, gid int
	size     int64
	changed  int64  // as seconds
	link     string // of a symbolic link
	sum      [sha256.Size]byte
	layer    int
}

// Tree reads all layers of the image. They have the limits, and are checked, as those that a store unpacks.
func (o *Outside) Tree(ctx context.Context) (*Tree, error) {
	t := &Tree{map[string]treeFile{}}
	b := newBudget(DefaultLimits)
	for i, l := range o.Layers {
		if err := l.layer.read(ctx, b, nil, func(r io.Reader) error { return t.add(i, r, b) }); err != nil {
			return nil, fmt.Errorf("layer %s: %w", l.DiffID, err)
		}
	}
	return t, nil
}

// add lays a layer over what is there.
func (t *Tree) add(layer int, r io.Reader, b *budget) error {
	hidden := map[string]bool{} // names of layers below, with what is below them; a name that ends in a slash is only the latter
	for in := tar.NewReader(r); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			t.hide(layer, hidden)
			return nil
		}
		if err != nil {
			return tarError(err)
		}
		if h.Typeflag == tar.TypeXGlobalHeader {
			continue
		}
		if err := b.addEntry(); err != nil {
			return err
		}
		name, err := cleanName(h.Name)
		if err != nil {
			return err
		}
		dir, base := path.Split(name)
		switch {
		case name == "":
		case base == opaqueName:
			hidden[dir] = true
		case strings.HasPrefix(base, whiteoutPrefix):
			hidden[dir+strings.TrimPrefix(base, whiteoutPrefix)] = true
		default:
			f, err := t.file(h, in, b)
			if err != nil {
				return fmt.Errorf("%.200q: %w", name, err)
			}
			if was, ok := t.files[name]; ok && was.kind == tar.TypeDir && f.kind != tar.TypeDir {
				hidden[name+"/"] = true
			}
			f.layer = layer
			t.put(name, f)
		}
	}
}

// put adds a file and the directories above it that no layer has an entry of, as those who unpack it make them.
func (t *Tree) put(name string, f treeFile) {
	t.files[name] = f
	for up := path.Dir(name); up != "."; up = path.Dir(up) {
		if _, ok := t.files[up]; ok {
			return
		}
		t.files[up] = treeFile{kind: tar.TypeDir, mode: 0o755, layer: f.layer}
	}
}

// hide removes what a layer deletes of those below.
func (t *Tree) hide(layer int, hidden map[string]bool) {
	if len(hidden) == 0 {
		return
	}
	for name, f := range t.files {
		if f.layer == layer {
			continue
		}
		gone := hidden[name] || hidden[""] // "": the root is opaque
		for up := path.Dir(name); up != "." && !gone; up = path.Dir(up) {
			gone = hidden[up] || hidden[up+"/"]
		}
		if gone {
			delete(t.files, name)
		}
	}
}

// file reads what a layer has of a name.
func (t *Tree) file(h *tar.Header, r io.Reader, b *budget) (treeFile, error) {
	f := treeFile{kind: h.Typeflag, mode: h.Mode & 0o1777, uid: h.Uid, gid: h.Gid, changed: seconds(h.ModTime)}
	switch h.Typeflag {
	case tar.TypeDir:
	case tar.TypeSymlink:
		f.link, f.mode = h.Linkname, 0o777
	case tar.TypeReg, tar.TypeCont, tar.TypeGNUSparse:
		f.kind, f.size, f.mode = tar.TypeReg, h.Size, h.Mode&0o777
		if err := b.addBytes(h.Size); err != nil {
			return f, err
		}
		sum := sha256.New()
		if _, err := io.Copy(sum, r); err != nil {
			return f, tarError(err)
		}
		sum.Sum(f.sum[:0])
	case tar.TypeLink:
		from, err := cleanName(h.Linkname)
		if err != nil {
			return f, err
		}
		return t.files[from], nil // no file if there is none
	default:
		f.kind = 0
	}
	return f, nil
}

// seconds is a time as a tar has it.
func seconds(t time.Time) int64 { return t.Round(time.Second).Unix() }

// ErrUnsent is why the contents of all files are wanted.
var ErrUnsent = errors.New("a file differs from the image's, and its contents were not sent")

// changes finds what of a root file system differs from a Tree.
type changes struct {
	tree  *Tree
	out   *tar.Writer
	spool *os.File
	most  int64

	dirs map[string]*changedDir // all there are
	told map[string]bool        // what of the tree is there
}

// A changedDir is a directory as it is now.
type changedDir struct {
	mode     int64
	uid, gid int
	differs  bool
	mounted  bool // something is, below it
	written  bool
	closed   bool // not all names in it are known
}

// Changes reads a root file system as [agentproto.TarRootRequest] says, which was this tree at first, and writes what differs as
// the tar of a layer in which deletions are marked, with the directories that lead there. Times do not matter. dir is for what has
// to be looked at before it is written, and maxBytes bounds a file, 0 is 16 GiB. It fails with ErrUnsent if a file is not as it was, and
// is without contents.
func (t *Tree) Changes(ctx context.Context, r io.Reader, w io.Writer, dir string, maxBytes int64) error {
	spool, err := unnamed(dir)
	if err != nil {
		return err
	}
	defer spool.Close()
	c := &changes{tree: t, out: tar.NewWriter(w), spool: spool.File, most: cmp.Or(maxBytes, maxFilesSize), dirs: map[string]*changedDir{}, told: map[string]bool{}}
	count, names := 0, 0
	for in := tar.NewReader(&contextReader{ctx, r}); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return c.end(ctx)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return fmt.Errorf("%w: the files are not a readable tar: %w", backend.ErrImageInvalid, err)
		}
		count, names = count+1, names+len(h.Name)
		if most := len(t.files) + maxFiles; count > most || names > maxTreeNames {
			return fmt.Errorf("%w: there are over %d files, or %d bytes of names", backend.ErrImageInvalid, most, maxTreeNames)
		}
		name, err := cleanName(h.Name)
		if err == nil && name != "" {
			err = c.member(name, h, in)
		}
		if err != nil {
			return fmt.Errorf("%.200q: %w", h.Name, err)
		}
	}
}

// maxTreeNames bounds the names of a root file system, with those of its image.
const maxTreeNames = 256 << 20

// member compares one name.
func (c *changes) member(name string, h *tar.Header, content io.Reader) error {
	was, there := c.tree.files[name]
	if there {
		c.told[name] = true
	}
	now := treeFile{kind: h.Typeflag, mode: h.Mode & 0o1777, uid: h.Uid, gid: h.Gid, size: h.Size, link: h.Linkname}
	same := there && was.kind == now.kind && was.uid == now.uid && was.gid == now.gid
	switch h.Typeflag {
	case tar.TypeDir:
		if _, again := c.dirs[name]; !again {
			c.dirs[name] = &changedDir{mode: now.mode, uid: now.uid, gid: now.gid, differs: !same || was.mode != now.mode}
		}
		return nil
	case tar.TypeFifo:
		c.untold(name)
		return nil
	case tar.TypeBlock:
		if !there || was.kind != tar.TypeReg || was.uid != now.uid || was.gid != now.gid || was.mode != now.mode || was.size != now.size || was.changed != seconds(h.ModTime) {
			return ErrUnsent
		}
		return nil
	case tar.TypeSymlink:
		if same && was.link == now.link {
			return nil
		}
		return c.write(name, h, nil)
	case tar.TypeReg:
		if h.Size > c.most && h.Size != was.size {
			return fmt.Errorf("%w: it has %d bytes, more than the %d that may be written", backend.ErrImageInvalid, h.Size, c.most)
		}
		return c.file(name, h, content, same && was.mode == now.mode && was.size == now.size, was.sum)
	}
	return fmt.Errorf("%w: it is of kind %q", backend.ErrImageInvalid, h.Typeflag)
}

// file writes a file, unless it may be the same and is.
func (c *changes) file(name string, h *tar.Header, content io.Reader, maySame bool, was [sha256.Size]byte) error {
	if !maySame {
		return c.write(name, h, content)
	}
	if _, err := c.spool.Seek(0, io.SeekStart); err != nil {
		return err
	}
	var sum hash.Hash = sha256.New()
	if _, err := io.Copy(io.MultiWriter(c.spool, sum), content); err != nil {
		return err
	}
	if slices.Equal(sum.Sum(nil), was[:]) {
		return nil
	}
	return c.write(name, h, io.NewSectionReader(c.spool, 0, h.Size))
}

// untold notes what a root does not tell: nothing there, or below, was deleted.
func (c *changes) untold(name string) {
	if d := c.dirs[name]; d != nil {
		d.closed = true
	}
	for up := path.Dir(name); up != "."; up = path.Dir(up) {
		if d := c.dirs[up]; d != nil {
			d.mounted = true
		}
	}
}

// write writes a member, after the directories that lead to it.
func (c *changes) write(name string, h *tar.Header, content io.Reader) error {
	if err := c.leadTo(name); err != nil {
		return err
	}
	if err := c.out.WriteHeader(&tar.Header{Typeflag: h.Typeflag, Name: name, Linkname: h.Linkname, Mode: h.Mode, Size: h.Size, Uid: h.Uid, Gid: h.Gid}); err != nil || content == nil {
		return err
	}
	_, err := io.Copy(c.out, content)
	return err
}

func (c *changes) leadTo(name string) error {
	var above []string
	for up := path.Dir(name); up != "."; up = path.Dir(up) {
		if d := c.dirs[up]; d != nil && !d.written {
			above = append(above, up)
		}
	}
	for _, up := range slices.Backward(above) {
		if err := c.directory(up); err != nil {
			return err
		}
	}
	return nil
}

func (c *changes) directory(name string) error {
	d := c.dirs[name]
	d.written = true
	return c.out.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: d.mode, Uid: d.uid, Gid: d.gid})
}

// end writes what is known when all names are: the directories that differ, and the names that were deleted.
func (c *changes) end(ctx context.Context) error {
	for name, d := range c.dirs {
		// One that only leads to a mount was made for it.
		if _, had := c.tree.files[name]; d.written || !d.differs || d.mounted && !had {
			continue
		}
		if err := errors.Join(c.leadTo(name), c.directory(name)); err != nil {
			return err
		}
	}
	for name := range c.tree.files {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		up := path.Dir(name)
		d := c.dirs[up]
		if c.told[name] || up != "." && (d == nil || d.closed) {
			continue
		}
		if err := c.leadTo(name); err != nil {
			return err
		}
		if err := c.out.WriteHeader(&tar.Header{Typeflag: tar.TypeChar, Name: name}); err != nil {
			return err
		}
	}
	return c.out.Close()
}
