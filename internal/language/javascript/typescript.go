package javascript

import (
	_ "embed"
	"encoding/json"
	"path"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/language/source"
)

// TypeScript is TypeScript without a check of its types. Its code becomes JavaScript inside the sandbox,
// under the sandbox's limits: a transpiler in our process would be one more thing that hostile
// code can keep busy. The transpiler keeps lines as they are.
var TypeScript = language.Language{
	Name: "typescript", Title: "TypeScript", Aliases: []string{"ts"},
	Extensions: endingsOfTypeScript, Shebangs: []string{"ts-node", "tsx"},
	Programs: Language.Programs, Install: Language.Install,
	Plan: planTypeScript, Libraries: &libraries,
	Details: detailsOfTypeScript,
	Kernel:  kernelOfTypeScript,
	Scan:    scanTypeScript, ModuleSeparator: "/", LibraryName: libraryName,
}

var endingsOfTypeScript = []string{".ts", ".mts", ".cts", ".tsx"}

//go:embed typescript.cjs
var transpile []byte

// transpiler is Sucrase as one file; scripts/sucrase makes it.
//
//go:embed sucrase.cjs.gz
var transpiler []byte

// transpilerFiles are the transpiler in a directory, and the file to load.
func transpilerFiles(dir string) ([]language.File, string) {
	entry := path.Join(dir, "typescript.cjs")
	return []language.File{{Path: entry, Data: transpile, Mode: 0o644}, {Path: path.Join(dir, "sucrase.cjs.gz"), Data: transpiler, Mode: 0o644}}, entry
}

func planTypeScript(src language.Source) (language.Plan, error) {
	code, err := source.Clean(src.Code)
	if err != nil {
		return language.Plan{}, err
	}
	module := path.Ext(src.Name) != ".cts" && usesModules(code)
	if module && len(src.Files) > 0 && !hasPackage(src.Files) {
		src.Files = append(src.Files[:len(src.Files):len(src.Files)], modulePackage)
	}
	l, err := language.Lay(src, code, "main.ts", endingsOfTypeScript...)
	if err != nil {
		return language.Plan{}, err
	}
	ext := map[string]string{".mts": ".mjs", ".cts": ".cjs"}[path.Ext(l.Main)]
	switch {
	case ext == "" && module && len(src.Files) == 0:
		ext = ".mjs" // the ending .js is a module's only where a package.json says so
	case ext == "":
		ext = ".js"
	}
	main := struct {
		Source string `json:"source"`
		Target string `json:"target"`
	}{l.Main, l.Main[:len(l.Main)-len(path.Ext(l.Main))] + ext}
	dir := src.Private(src.TempDir)
	files, _ := transpilerFiles(dir)
	call := path.Join(dir, "run.cjs")
	arguments, err := json.Marshal([]any{l.WithEnding(endingsOfTypeScript...), main})
	if err != nil {
		return language.Plan{}, err
	}
	l.Files = append(append(l.Files, files...), language.File{
		Path: call, Data: []byte("require('./typescript.cjs').files(..." + string(arguments) + ");\n"), Mode: 0o644,
	})
	l.Cleanup = append(l.Cleanup, dir, main.Target)
	l.Main = main.Target
	return l.Interpret(src, append(node(src.Program, src.MemoryLimit), "--enable-source-maps", "--require", call)), nil
}

// kernelOfTypeScript is JavaScript's, which drops the types of a cell first.
var kernelOfTypeScript = &language.Kernel{
	Plan: func(src language.KernelSource) (language.Plan, error) {
		plan, err := kernel.Plan(src)
		files, entry := transpilerFiles(src.Dir)
		plan.Files = append(plan.Files, files...)
		plan.Steps[0].Argv = append(plan.Steps[0].Argv, entry)
		return plan, err
	},
	Interrupt: kernel.Interrupt, Repeat: kernel.Repeat, EndInput: kernel.EndInput,
}

// scanTypeScript reads a program as JavaScript. Types can hide from that reading what they stand beside,
// so the program does not count as read to its end.
func scanTypeScript(m *language.Meter, code []byte) language.Facts {
	facts := scanCode(m, code)
	facts.Problem = "TypeScript is read as JavaScript, and its types may hide something: check the JavaScript that it becomes"
	return facts
}
