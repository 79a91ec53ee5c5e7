// Package layertree takes the files of layers out of sandboxes and hands them on:
// as tar streams, between a directory of this machine and a place that only takes streams.
//
// What comes out of a sandbox is hostile. Only files, directories and, where they are asked
// for, symbolic links are taken; a link is data, which is never followed here. Times are
// kept: caches and compiled files go by them.
package layertree

import (
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/tarcheck"
	"github.com/llmsandbox/llmsandbox/internal/untar"
)

// Options say what [Unpack] takes.
type Options struct {
	MaxBytes int64 // bytes of content; 0 is no limit
	MaxFiles int64 // files, directories and links; 0 is no limit
	// Links takes symbolic links, which otherwise end the unpacking with an error.
	Links bool
	// At is where the directory lies inside, with Links: a link that leads out of it by a
	// relative way is made an absolute one, which means the same there.
	At string
	// Shared lets everybody write: a private layer lies on top in a sandbox, where the
	// code that changes files need not be the user that made them. Otherwise everybody
	// may only read.
	Shared bool
}

// Unpack unpacks a tar stream below a directory. What is not plain ends it with an error: a layer
// of which something is missing is no layer. On an error what was unpacked so far stays.
func Unpack(r io.Reader, dir string, o Options) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	_, err = untar.Unpack(r, root, untar.Options{
		Options: tarcheck.Options{MaxMembers: o.MaxFiles, MaxBytes: o.MaxBytes, Links: o.Links},
		Mode:    o.mode, DirMode: o.mode(0o100), Times: true, Target: o.target,
	})
	return err
}

// mode keeps of a mode only whether it can be executed.
func (o Options) mode(mode int64) fs.FileMode {
	m := fs.FileMode(0o644)
	if o.Shared {
		m = 0o666
	}
	if mode&0o111 != 0 {
		m |= 0o111
	}
	return m
}

// target is what a link leads to. Not every engine takes links that lead out of a directory.
func (o Options) target(name []string, target string) string {
	from := path.Join(name[:len(name)-1]...)
	if to := path.Join(from, target); !path.IsAbs(target) && (to == ".." || strings.HasPrefix(to, "../")) {
		return path.Join("/", o.At, to)
	}
	return target
}
