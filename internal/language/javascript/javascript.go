// Package javascript describes JavaScript as Node.js runs it.
package javascript

import (
	"path"
	"strconv"

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
