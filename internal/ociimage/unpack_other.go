//go:build !linux

package ociimage

import (
	"context"
	"io"
)

func unpack(context.Context, string, io.Reader, *budget) (layerRecord, error) {
	return layerRecord{}, errUnsupported
}

func syncFilesystem(string) error { return errUnsupported }
