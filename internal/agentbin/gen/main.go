// Command gen builds the guest agent for every architecture and compresses it for
// embedding. The same source and toolchain give the same bytes, wherever it runs.
package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

func main() {
	for _, arch := range []string{"amd64", "arm64"} {
		if err := generate(arch); err != nil {
			fmt.Fprintf(os.Stderr, "build the agent for %s: %v\n", arch, err)
			os.Exit(1)
		}
	}
}

func generate(arch string) error {
	dir, err := os.MkdirTemp("", "agentbin")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	binary := filepath.Join(dir, "agent")
	// Functions begin every 16 bytes and not every 32, and fmt, which is for errors here, is not inlined: that is 50 KiB of the 3 MiB.
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -buildid= -funcalign=16", "-gcflags=fmt=-l", "-o", binary,
		"github.com/llmsandbox/llmsandbox/cmd/llmsandbox-agent")
	// Everything that changes the result is fixed here rather than taken from the
	// environment.
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch,
		"GOFLAGS=", "GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=", "GOFIPS140=off")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	content, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := w.Write(content); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile("agent_linux_"+arch+".gz", packed.Bytes(), 0o644)
}
