//go:build !linux

package backendtest

import (
	"errors"
	"io/fs"
)

func makeFIFO(string) error { return errors.ErrUnsupported }

func makeMemoryDevice(string) error { return errors.ErrUnsupported }

func ownerAndTimes(fs.FileInfo) string { return "" }
