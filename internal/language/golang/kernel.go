package golang

import (
	_ "embed"
	"path"
	"strconv"
	"time"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

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
