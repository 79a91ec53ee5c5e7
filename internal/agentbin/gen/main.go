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

// notInlined are packages whose functions are not inlined: they wait for the kernel or are about errors, and it saves 60 KiB.
var notInlined = []string{"fmt", "golang.org/x/sys/unix", "io", "reflect", "slices", "sync", "time"}

func generate(arch string) error {
	dir, err := os.MkdirTemp("", "agentbin")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	binary := filepath.Join(dir, "agent")
	// Functions begin every 16 bytes and not every 32.
	args := []string{"build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -buildid= -funcalign=16", "-o", binary}
	for _, pkg := range notInlined {
		args = append(args, "-gcflags="+pkg+"=-l")
	}
	const module = "github.com/llmsandbox/llmsandbox"
	// internal/guest is built as usual, since nothing but system calls may be called between fork and exec.
	build := exec.Command("go", append(args, "-gcflags="+module+"/...=-l", "-gcflags="+module+"/internal/guest=", module+"/cmd/llmsandbox-agent")...)
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
