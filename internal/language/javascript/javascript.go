// Package javascript describes JavaScript as Node.js runs it.
package javascript

import (
	_ "embed"
	"encoding/json"
	"path"
	"strconv"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/language/source"
)

// Language is JavaScript.
var Language = language.Language{
	Name: "javascript", Title: "JavaScript", Aliases: []string{"js", "node", "nodejs"},
	Extensions: []string{".js", ".mjs", ".cjs"}, Shebangs: []string{"node", "nodejs"},
	Programs: [][]string{{"node", "nodejs"}},
	Install:  "install it with: apt-get install nodejs; or use --image node:22",
	Plan:     plan, Libraries: &libraries,
	Details: details,
	Kernel:  kernel, Ahead: &language.Ahead{Capture: ahead, Settable: settable, Args: true},
	Scan: scanCode, ModuleSeparator: "/", LibraryName: libraryName, Missing: &missing,
}

// modulePackage says that the files beside it are modules.
var modulePackage = language.File{Path: "package.json", Data: []byte("{\"type\":\"module\"}\n"), Mode: 0o644}

func plan(src language.Source) (language.Plan, error) {
	code, err := source.Clean(src.Code)
	if err != nil {
		return language.Plan{}, err
	}
	module := path.Ext(src.Name) != ".cjs" && usesModules(code)
	main := "main.js"
	if module && len(src.Files) == 0 {
		main, src.Name = "main.mjs", ""
	}
	if module && len(src.Files) > 0 && !hasPackage(src.Files) {
		// The ending .js is a module's only where a package.json says so.
		src.Files = append(src.Files[:len(src.Files):len(src.Files)],
			modulePackage)
	}
	l, err := language.Lay(src, code, main, ".js", ".mjs", ".cjs")
	if err != nil {
		return language.Plan{}, err
	}
	return l.Interpret(src, node(src.Program, src.MemoryLimit)), nil
}

// node is the program's start, with its heap sized by the limit; 0 is none.
func node(program func(names ...string) string, memoryLimit int64) []string {
	argv := []string{program("node", "nodejs")}
	if memoryLimit > 0 {
		// Without /sys it cannot see its cgroup, and would put off collecting garbage
		// until the kernel kills it. The rest is for what lies outside of its heap.
		argv = append(argv, "--max-old-space-size="+strconv.FormatInt(max(memoryLimit*3/4>>20, 1), 10))
	}
	return argv
}

func hasPackage(files []language.File) bool {
	for _, f := range files {
		if path.Clean(f.Path) == "package.json" {
			return true
		}
	}
	return false
}

var detailsOfTypeScript = language.Details{
	UseCases:       []string{"JSON and text processing", "asynchronous code", "code for Node.js with types, which are not checked"},
	PackageManager: "npm",
	Version:        details.Version,
	Known:          details.Known,
	Present:        details.Present,
	Examples: []language.Example{
		{Title: "Hello", Description: "Types are removed, not checked.", Code: "const name: string = \"TypeScript\";\nconsole.log(`Hello from ${name}!`);\n"},
		{
			Title: "Group records", Description: "Interfaces, generics and enums.",
			Code: `enum Kind { Fruit = "fruit", Root = "root" }

interface Item { kind: Kind; name: string }

function group<T, K extends string>(items: T[], key: (item: T) => K): Record<K, T[]> {
  const groups = {} as Record<K, T[]>;
  for (const item of items) (groups[key(item)] ??= []).push(item);
  return groups;
}

const items: Item[] = [{ kind: Kind.Fruit, name: "fig" }, { kind: Kind.Root, name: "beet" }, { kind: Kind.Fruit, name: "plum" }];
console.log(JSON.stringify(group(items, (item) => item.kind)));
`,
		},
	},
}

var details = language.Details{
	UseCases:       []string{"JSON and text processing", "asynchronous code", "trying out code for the web's servers"},
	PackageManager: "npm",
	Version:        []string{"node", "--version"},
	Known:          []string{"lodash", "axios", "express", "typescript", "d3", "date-fns", "mathjs", "zod"},
	Present: func(names []string) []string {
		const find = "for (const n of process.argv.slice(1)) try { require.resolve(n); console.log(n) } catch {}"
		return append([]string{"node", "-e", find}, names...)
	},
	Examples: []language.Example{
		{Title: "Hello", Description: "Prints a line.", Code: "console.log(\"Hello from JavaScript!\");\n"},
		{
			Title: "Reshape JSON", Description: "Groups records by a key.",
			Code: `const records = [{ k: "a", n: 1 }, { k: "b", n: 2 }, { k: "a", n: 3 }];
const sums = {};
for (const { k, n } of records) sums[k] = (sums[k] ?? 0) + n;
console.log(JSON.stringify(sums));
`,
		},
		{
			Title: "Modules and await", Description: "Code with import is a module, where await may stand at the top.",
			Code: `import { readFile, writeFile } from "node:fs/promises";

await writeFile("note.txt", "kept while the sandbox lives");
console.log(await readFile("note.txt", "utf8"));
`,
		},
	},
}

//go:embed ahead.js
var bootstrap string

// ahead has Node.js wait for its code.
func ahead(src language.CaptureSource) language.Capture {
	before := src.Current("NODE_OPTIONS")
	literal, err := json.Marshal(before)
	if err != nil {
		panic(err) // a string always can be
	}
	file := path.Join(src.Support, "ahead.js")
	return language.Capture{
		Files: []language.File{{Path: file, Data: []byte(strings.Replace(bootstrap, "@before@", string(literal), 1)), Mode: 0o644}},
		Env:   []string{strings.TrimSpace("NODE_OPTIONS=--require=" + file + " " + before)},
	}
}

// settable reports whether a variable can be set once the interpreter has started.
func settable(name string) bool {
	return language.SetLate(name, "NODE", "UV_", "ICU_", "OPENSSL_", "SSL_", "NO_COLOR", "FORCE_COLOR")
}

//go:embed kernel.cjs
var kernelDriver []byte

// kernel runs cells as V8 evaluates a console's lines, which keeps const and let, lets
// them be declared again, and awaits at the top level.
var kernel = &language.Kernel{
	Plan: func(src language.KernelSource) (language.Plan, error) {
		driver := src.File("kernel.cjs", kernelDriver)
		return language.Plan{
			Files: []language.File{driver},
			Steps: []language.Step{{Argv: append(node(src.Program, src.MemoryLimit), driver.Path)}},
		}, nil
	},
	Interrupt: language.InterruptBoth,
	Repeat:    true,
	EndInput:  true,
}

var missing = language.Missing{
	Messages: [][2]string{{"Cannot find module '", "'"}, {"Cannot find package '", "'"}},
	Library: func(module string) string {
		parts := strings.SplitN(module, "/", 3)
		if module[0] == '@' && len(parts) > 1 {
			return parts[0] + "/" + parts[1]
		}
		return parts[0]
	},
}

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
