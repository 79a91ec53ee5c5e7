//go:build linux

package main

import (
	"io"
	"os"
	"runtime"
	"strings"
)

// writeEnvironment reports what this process was given by its container, for places where
// no API reports it: strings that each end in a zero byte, of which the last is empty.
// They are the architecture, the current directory, and the variables but those of the
// agent's own.
func writeEnvironment(w io.Writer) error {
	dir, err := os.Getwd()
	if err != nil {
		dir = "" // not known, which is no reason to keep anybody out
	}
	var all strings.Builder
	put := func(s string) { all.WriteString(s); all.WriteByte(0) }
	put(runtime.GOARCH)
	put(dir)
	for _, kv := range os.Environ() {
		if kv != "" && !strings.HasPrefix(kv, "LLMSANDBOX_") {
			put(kv)
		}
	}
	put("")
	_, err = io.WriteString(w, all.String())
	return err
}
