//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// maxFilter is the kernel's limit of 4096 instructions, in bytes.
const maxFilter = 4096 * 8

// readFilter reads the seccomp filter that every process gets; without a path there
// is none.
func readFilter(path string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open the seccomp filter: %w", err)
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxFilter+1))
	if err != nil {
		return nil, fmt.Errorf("read the seccomp filter: %w", err)
	}
	if len(raw) == 0 {
		// An empty one would be none at all.
		return nil, errors.New("the seccomp filter " + path + " is empty")
	}
	return raw, nil
}
