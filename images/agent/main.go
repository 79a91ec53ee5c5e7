// Command agent makes what the image of the guest agent is made of, or that image itself,
// from the binaries that llmsandbox carries. The same source gives the same bytes.
//
//	go run ./images/agent -arch arm64 -dir DIR            the directory for the Dockerfile
//	go run ./images/agent -arch arm64 -tar FILE -tag NAME an archive as of docker save
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/llmsandbox/llmsandbox/internal/agentbin"
	"github.com/llmsandbox/llmsandbox/internal/scratchimage"
	"github.com/llmsandbox/llmsandbox/internal/seccomp"
)

// DefaultTag is the image's name unless another one is asked for.
const defaultTag = "llmsandbox/agent:1"

func main() {
	arch := flag.String("arch", runtime.GOARCH, "`architecture`: amd64 or arm64")
	dir := flag.String("dir", "", "`directory` to put the image's files into; it must exist")
	tar := flag.String("tar", "", "`file` to write the image to, as docker save does")
	tag := flag.String("tag", defaultTag, "`name` of the image in that file")
	flag.Parse()
	if err := run(*arch, *dir, *tar, *tag); err != nil {
		fmt.Fprintln(os.Stderr, "agent image:", err)
		os.Exit(1)
	}
}

func run(arch, dir, tar, tag string) error {
	if (dir == "") == (tar == "") || flag.NArg() > 0 {
		return errors.New("give -dir or -tar, and nothing else but their flags")
	}
	files, err := contents(arch)
	if err != nil {
		return err
	}
	if dir != "" {
		return scratchimage.Extract(files, dir)
	}
	return scratchimage.Image{Tag: tag, Arch: arch, User: "65532:65532", Entrypoint: []string{"/agent"}, Files: files}.Write(tar)
}

// contents are the agent, which must be readable to be copied, and its system call filter.
func contents(arch string) ([]scratchimage.File, error) {
	r, err := agentbin.Open(arch)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	agent, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("unpack the agent: %w", err)
	}
	filter, err := seccomp.Filter(arch)
	if err != nil {
		return nil, err
	}
	return []scratchimage.File{{Name: "agent", Mode: 0o555, Content: agent}, {Name: "seccomp", Mode: 0o444, Content: filter}}, nil
}
