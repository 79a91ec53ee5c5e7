package ociimage

import (
	"io/fs"
	"syscall"
)

// openNonblock keeps a FIFO in an image's directory from holding up its reader.
const openNonblock = syscall.O_NONBLOCK

func inode(info fs.FileInfo) uint64 { return info.Sys().(*syscall.Stat_t).Ino }
