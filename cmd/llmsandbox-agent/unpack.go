//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/llmsandbox/llmsandbox/internal/guest/untar"
)

// These bound what is unpacked when the command line does not: more than all layers of a
// sandbox that llmsandbox itself makes.
const (
	defaultMaxFiles = 2 << 20
	defaultMaxBytes = 32 << 30
)

// unpack unpacks the tar stream on stdin into a directory that is empty or missing.
func unpack(args []string) error {
	usage := errors.New("usage: llmsandbox-agent unpack DIR [--max-files N] [--max-bytes N]")
	if len(args)%2 == 0 {
		return usage
	}
	maxFiles, maxBytes := int64(defaultMaxFiles), int64(defaultMaxBytes)
	to := map[string]*int64{"--max-files": &maxFiles, "--max-bytes": &maxBytes}
	for flags := args[1:]; len(flags) > 0; flags = flags[2:] {
		limit := to[flags[0]]
		if limit == nil {
			return usage
		}
		n, err := strconv.ParseInt(flags[1], 10, 64)
		if err != nil || n < 1 {
			return fmt.Errorf("flag %s: %q is not a number from 1 on", flags[0], flags[1])
		}
		*limit = n
	}
	return untar.Layers(os.Stdin, args[0], maxFiles, maxBytes)
}
