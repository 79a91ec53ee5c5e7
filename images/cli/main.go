// Command cli makes the image of the llmsandbox command without an engine, as the
// Dockerfile beside it does with one:
//
//	go run ./images/cli -program FILE -arch arm64 -tar FILE -tag NAME
//
// The program must be static.
package main

import (
	"debug/elf"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"

	"github.com/llmsandbox/llmsandbox/internal/scratchimage"
)

// defaultTag is the image's name unless another one is asked for.
const defaultTag = "llmsandbox/cli:1"

func main() {
	program := flag.String("program", "", "`file` of the command")
	arch := flag.String("arch", runtime.GOARCH, "`architecture`: amd64 or arm64")
	tar := flag.String("tar", "", "`file` to write the image to, as docker save does")
	tag := flag.String("tag", defaultTag, "`name` of the image in that file")
	flag.Parse()
	if err := run(*program, *arch, *tar, *tag); err != nil {
		fmt.Fprintln(os.Stderr, "command image:", err)
		os.Exit(1)
	}
}

func run(program, arch, tar, tag string) error {
	if program == "" || tar == "" || flag.NArg() > 0 {
		return errors.New("give -program and -tar, and nothing else but flags")
	}
	if err := static(program); err != nil {
		return err
	}
	content, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	return scratchimage.Image{
		Tag: tag, Arch: arch, User: "65532:65532", Entrypoint: []string{"/llmsandbox"},
		Files: []scratchimage.File{{Name: "llmsandbox", Mode: 0o555, Content: content}},
	}.Write(tar)
}

// static fails for a program that needs a loader, which the image does not have.
func static(program string) error {
	f, err := elf.Open(program)
	if err != nil {
		return fmt.Errorf("%s: %w", program, err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return fmt.Errorf("%s is not static: build it with CGO_ENABLED=0", program)
		}
	}
	return nil
}
