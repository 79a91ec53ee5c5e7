package docs_test

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const module = "github.com/llmsandbox/llmsandbox"

// imports are the packages that the pages' code uses, by their names.
var imports = map[string]string{
	"context": "context", "fmt": "fmt", "log": "log", "time": "time", "os": "os", "errors": "errors",
	"llmsandbox": module, "backend": module + "/backend", "client": module + "/client", "pool": module + "/pool", "policyfile": module + "/security/policyfile", "security": module + "/security",
	"docker": module + "/backend/docker", "kubernetes": module + "/backend/kubernetes", "engine": module + "/backend/engine", "settings": module + "/backend/engine/settings",
}

// given is what the pages' code takes for granted.
var given = map[string]string{
	"ctx": "context.Context", "sb": "*llmsandbox.Sandbox", "sandbox": "*llmsandbox.Sandbox", "code": "string", "key": "string",
}

// bytes are the pages whose code is one.
var bytes = map[string]bool{"docs/security-policies.md": true}

// TestGoCompiles has each block of Go as the body of a function.
func TestGoCompiles(t *testing.T) {
	overlay := map[string]string{}
	var packages []string
	dir := t.TempDir()
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	for file, text := range pages(t) {
		for i, b := range blocks(file, text) {
			if b.language != "go" {
				continue
			}
			source, err := program(b)
			if err != nil {
				t.Errorf("%s, block %d: %v", file, i+1, err)
				continue
			}
			name := fmt.Sprintf("%s%d", strings.NewReplacer("/", "_", ".", "_", "-", "_").Replace(file), i+1)
			real := filepath.Join(dir, name+".go")
			if err := os.WriteFile(real, []byte(source), 0o600); err != nil {
				t.Fatal(err)
			}
			overlay[filepath.Join(here, name, "snippet.go")] = real
			packages = append(packages, "./"+name)
		}
	}
	if len(packages) < 8 {
		t.Fatalf("there are only %d blocks of Go, want at least 8", len(packages))
	}
	data, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, data, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("go", append([]string{"build", "-overlay", list}, packages...)...).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

var (
	qualifier = regexp.MustCompile(`\b([a-z]+)\.[A-Z]`)
	comment   = regexp.MustCompile(`(?m)//.*$`)
)

// program makes a file of a block. Variables that only show what there is are used.
func program(b block) (string, error) {
	body := b.text
	if regexp.MustCompile(`^[A-Z][A-Za-z]+: `).MatchString(body) { // a field of the options
		body = "_ = llmsandbox.Options{\n" + body + "}\n"
	}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, b.file, "package p\nfunc _() {\n"+body+"\n}", 0)
	if err != nil {
		return "", err
	}
	for _, statement := range file.Decls[0].(*ast.FuncDecl).Body.List {
		if define, ok := statement.(*ast.AssignStmt); ok && define.Tok == token.DEFINE {
			for _, left := range define.Lhs {
				body += "\n_ = " + left.(*ast.Ident).Name
			}
		}
	}
	var out strings.Builder
	out.WriteString("package snippet\n")
	used := map[string]bool{"context": true, "llmsandbox": true}
	for _, m := range qualifier.FindAllStringSubmatch(comment.ReplaceAllString(body, ""), -1) {
		used[m[1]] = true
	}
	for name := range used {
		if path, ok := imports[name]; ok {
			fmt.Fprintf(&out, "import %q\n", path)
		}
	}
	for name, kind := range given {
		if name == "code" && bytes[b.file] {
			kind = "[]byte"
		}
		fmt.Fprintf(&out, "var %s %s\n", name, kind)
	}
	fmt.Fprintf(&out, "func _() {\n%s\n}\n", body)
	return out.String(), nil
}
