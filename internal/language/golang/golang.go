// Package golang describes Go.
package golang

import (
	_ "embed"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/language/source"
)

// buildCache lies in the temporary directory, so that builds work, if slowly at first,
// where no prepared cache is mounted there.
func buildCache(tempDir string) string { return path.Join(tempDir, ".cache/go-build") }

// environment keeps the go command off the network and off other modules.
var environment = []string{
	"GOTOOLCHAIN=local", "GOPROXY=off", "GOWORK=off", "GOFLAGS=-mod=mod", "CGO_ENABLED=0", "GOTELEMETRY=off",
}

// Language is Go.
var Language = language.Language{
	Name: "go", Title: "Go", Aliases: []string{"golang"},
	Extensions: []string{".go"},
	Programs:   [][]string{{"go"}},
	Install:    "install it with: apt-get install golang-go; or use --image golang:1",
	Plan:       plan,
	Details:    details,
	Kernel:     kernel,
	Libraries:  &libraries,
	Scan:       scan, ModuleSeparator: "/", LibraryName: libraryName, Missing: &missing,
	Caches: []language.Cache{cache},
}

func plan(src language.Source) (language.Plan, error) {
	code, err := source.Clean(src.Code)
	if err != nil {
		return language.Plan{}, err
	}
	// Always a directory: the go command overlooks hidden files. It takes no program from
	// _test.go, nor all names that a file may have.
	if len(src.Files) == 0 && !plainName(src.Name) {
		src.Name = ""
	}
	l, err := language.LayProject(src, code, "main.go", ".go")
	if err != nil {
		return language.Plan{}, err
	}
	target := "."
	if len(src.Files) == 0 {
		// Named, not by its directory, so that neither "//go:build ignore" nor _windows.go hides it.
		target = path.Base(l.Main)
	}
	if !hasModule(l) {
		l.Files = append(l.Files, language.File{Path: path.Join(l.Dir, "go.mod"), Data: []byte("module program\n"), Mode: 0o644})
	}
	cache := buildCache(src.TempDir)
	// Without its note of when it last looked for old entries, the go command looks
	// through all of the cache now.
	l.Files = append(l.Files, language.File{Path: path.Join(cache, "trim.txt"), Data: []byte(strconv.FormatInt(time.Now().Unix(), 10)), Mode: 0o644})
	program := src.Private(src.TempDir)
	build := language.Step{Argv: []string{src.Program("go"), "build", "-buildvcs=false", "-ldflags=-s -w", "-o", program, target},
		Dir: l.Dir, Env: append(goEnv(cache, language.Parallel(src.CPULimit)), rareCollection(src.MemoryLimit/2)...), Compile: true}
	p := language.Plan{Files: l.Files, Cleanup: append(l.Cleanup, program)}
	if len(src.Libraries) > 0 {
		file, init := workspace(src, l.Dir, build.Env)
		build.Env = init.Env
		p.Steps, p.Cleanup = append(p.Steps, init), append(p.Cleanup, file, file+".sum")
	}
	p.Steps = append(p.Steps, build, language.Step{Argv: append([]string{program}, src.Args...)})
	return p, nil
}

func plainName(name string) bool {
	strange := func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("_.-", c)
	}
	return !strings.HasSuffix(name, "_test.go") && !strings.ContainsFunc(name, strange)
}

// goEnv is the go command's environment with a build cache. procs bounds how many
// compilers it runs at once, which otherwise are as many as the machine has CPUs: too
// many for a sandbox's memory and processes. 0 leaves it to the go command.
func goEnv(cache string, procs int) []string {
	env := append(environment[:len(environment):len(environment)], "GOCACHE="+cache)
	if procs > 0 {
		env = append(env, "GOMAXPROCS="+strconv.Itoa(procs))
	}
	return env
}

// rareCollection has the go command and its compilers collect garbage rarely, and as often as they
// need to above a heap of so many bytes; 0: the environment is as it was. They end soon.
func rareCollection(heap int64) []string {
	if heap == 0 {
		return nil
	}
	return []string{"GOGC=800", "GOMEMLIMIT=" + strconv.FormatInt(heap, 10)}
}

func hasModule(l language.Layout) bool {
	for _, f := range l.Files {
		if f.Path == path.Join(l.Dir, "go.mod") {
			return true
		}
	}
	return false
}

var details = language.Details{
	UseCases:       []string{"concurrent programs", "command line tools", "servers and protocols"},
	PackageManager: "go",
	Version:        []string{"go", "version"},
	Examples: []language.Example{
		{
			Title: "Hello", Description: "Package main with a function main.",
			Code: `package main

import "fmt"

func main() {
	fmt.Println("Hello from Go!")
}
`,
		},
		{
			Title: "Goroutines", Description: "Adds up on several of them.",
			Code: `package main

import (
	"fmt"
	"sync"
)

func main() {
	var wg sync.WaitGroup
	parts := make([]int, 4)
	for i := range parts {
		wg.Add(1)
		go func(i int) {
			defer wg.Done()
			for n := i; n <= 100; n += len(parts) {
				parts[i] += n
			}
		}(i)
	}
	wg.Wait()
	sum := 0
	for _, p := range parts {
		sum += p
	}
	fmt.Println(sum)
}
`,
		},
	},
}

var (
	//go:embed kernel/driver/main.go
	kernelMain []byte
	//go:embed kernel/driver/cell.go
	kernelCell []byte
	//go:embed kernel/driver/types.go
	kernelTypes []byte
	//go:embed kernel/driver/ask.go
	kernelAsk []byte
	//go:embed kernel/state/state.go
	kernelState []byte
	//go:embed kernel/state/codec.go
	kernelCodec []byte
)

// kernel compiles each cell, with the declarations of the cells before, into a program
// that begins with the variables the last one left. It needs nothing but the toolchain.
var kernel = &language.Kernel{
	Plan: func(src language.KernelSource) (language.Plan, error) {
		cache := buildCache(src.TempDir)
		plan := language.Plan{Files: []language.File{
			src.File("go.mod", []byte("module kernel\n\ngo 1.22\n")),
			src.File("driver/main.go", kernelMain),
			src.File("driver/cell.go", kernelCell),
			src.File("driver/types.go", kernelTypes),
			src.File("driver/ask.go", kernelAsk),
			src.File("state/state.go", kernelState),
			src.File("state/codec.go", kernelCodec),
			src.File("state/empty.s", nil), // lets a function of the runtime be named
			{Path: path.Join(cache, "trim.txt"), Data: []byte(strconv.FormatInt(time.Now().Unix(), 10)), Mode: 0o644},
		}}
		program := language.Quote(src.Program("go"))
		build := program + " build -buildvcs=false -o driver/driver ./driver"
		env := goEnv(cache, language.Parallel(src.CPULimit))
		if len(src.Libraries) > 0 {
			file, init := workspace(language.Source{RunID: src.ID, TempDir: src.TempDir, Libraries: src.Libraries, Program: src.Program}, src.Dir, env)
			build = language.Quote(init.Argv...) + " && " + build
			env = init.Env
			plan.Cleanup = []string{file, file + ".sum"}
		}
		script := "(cd " + language.Quote(src.Dir) + " && " + build + ") 3<&- 4>&- && exec " + language.Quote(path.Join(src.Dir, "driver/driver")) + " " + program + " " + language.Quote(src.Dir)
		plan.Steps = []language.Step{{Argv: []string{"sh", "-c", script}, Env: env}}
		return plan, nil
	},
	Interrupt: language.InterruptSignal,
	Repeat:    true,
}

var missing = language.Missing{
	Messages: [][2]string{
		{"cannot find module providing package ", ":"}, {"no required module provides package ", ";"},
		{"cannot find module providing package ", ""}, {"no required module provides package ", ""},
	},
	Library: func(module string) string { return module },
}
