// Package layertree takes the files of layers out of sandboxes and hands them on:
// as tar streams, between a folder of this machine and a place that only takes streams.
//
// What comes out of a sandbox is hostile. Only files, folders and, where they are asked
// for, symbolic links are taken; a link is data, which is never followed here. Times are
// kept: caches and compiled files go by them.
package layertree

import (
	"errors"
	"fmt"
)

// ErrTooLarge: a stream holds more than it may.
var ErrTooLarge = errors.New("too large")

// Options say what [Unpack] takes.
type Options struct {
	MaxBytes int64 // bytes of content
	MaxFiles int64 // files, folders and links
	// Links takes symbolic links, which otherwise end the unpacking with an error.
	Links bool
	// At is where the folder lies inside, with Links: a link that leads out of it by a
	// relative way is made an absolute one, which means the same there.
	At string
	// Shared lets everybody write: a private layer lies on top in a sandbox, where the
	// code that changes files need not be the user that made them. Otherwise everybody
	// may only read.
	Shared bool
}

// A Size is how much a stream or folder holds.
type Size struct {
	Files int64
	Bytes int64
}

// add counts one member of so many bytes.
func (s *Size) add(bytes int64, o Options) error {
	s.Files++
	if bytes < 0 || bytes > o.MaxBytes-s.Bytes || s.Files > o.MaxFiles {
		return fmt.Errorf("%w: more than %d files or %d bytes", ErrTooLarge, o.MaxFiles, o.MaxBytes)
	}
	s.Bytes += bytes
	return nil
}
