// Command notebook runs the cells of notebook.py in a kernel: data is cleaned and
// plotted, one cell has an error, one never ends, one installs a library.
//
//	go run ./examples/notebook -wheels DIR   # with a wheel of the library tidyname
package main

import (
	"context"
	_ "embed"
	"flag"
	"fmt"
	"log"
	"strings"
	"time"

	"github.com/llmsandbox/llmsandbox"
)

//go:embed notebook.py
var notebook string

func main() {
	wheels := flag.String("wheels", "", "folder with wheels to install from; empty: the configured registries")
	path := flag.String("path", "", "PATH in the sandbox; empty: the usual one")
	flag.Parse()
	o := llmsandbox.Options{Language: "python", Install: llmsandbox.InstallOptions{Local: *wheels}}
	o.Limits.Memory = 1 << 30
	if *path != "" {
		o.Env = map[string]string{"PATH": *path}
	}
	if err := run(context.Background(), o); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, o llmsandbox.Options) error {
	sandbox, err := llmsandbox.Open(ctx, &o)
	if err != nil {
		return err
	}
	defer sandbox.Close()
	kernel, err := sandbox.Kernel(ctx, "", &llmsandbox.KernelOptions{AllowInstall: true})
	if err != nil {
		return err
	}
	defer kernel.Close()
	for _, code := range strings.Split("\n"+notebook, "\n# %%")[1:] {
		_, code, _ = strings.Cut(code, "\n")
		timeout := time.Minute
		if strings.Contains(code, "while True") {
			timeout = time.Second
		}
		cell, err := kernel.Run(ctx, code, &llmsandbox.CellOptions{Timeout: timeout})
		if err != nil {
			return err
		}
		show(code, cell)
	}
	return nil
}

// show prints a line for what became of a cell.
func show(code string, cell *llmsandbox.Cell) {
	first, _, _ := strings.Cut(code, "\n")
	fmt.Printf("[%d] %s  %s", cell.Count, first, cell.Status)
	if cell.Error != nil {
		fmt.Printf(" %s", cell.Error.Name)
	}
	if value, _, more := strings.Cut(cell.Value["text/plain"], "\n"); value != "" && !more {
		fmt.Printf(" = %s", value)
	}
	for _, a := range cell.Artifacts {
		fmt.Printf(" -> %s", a.Name)
	}
	fmt.Println()
}
