package security_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/language/all"
	"github.com/llmsandbox/llmsandbox/internal/language/declared"
	"github.com/llmsandbox/llmsandbox/security"
)

// declaredAttacks are programs that each start another one, and declaredHarmless only look so.
var declaredAttacks = map[string][]string{
	"perl":   {`system("ls");`, "print `id`;", `open(my $f, "-|", "id");`, `open F, "id |";`, `CORE::exec 'sh'`},
	"php":    {`<?php system("ls");`, "<?php echo `id`;", `<?php \Shell_Exec ("id");`},
	"lua":    {`os.execute("ls")`, `local f = io . popen("id")`},
	"rust":   {`fn main() { std::process::Command::new("sh").status(); }`, `use std::process::{Command}; fn main() { Command :: new ("bash"); }`},
	"julia":  {"run(`ls`)", "pipeline(`a`, `b`)"},
	"kotlin": {`fun main() { Runtime.getRuntime().exec("ls") }`},
	"csharp": {`class A { static void Main() { System.Diagnostics.Process.Start("ls"); } }`},
	"sql":    {"select 1;\n.shell ls", "  .system id", ".import |id t"},
}

var declaredHarmless = map[string]string{
	"perl":   "# system('ls')\nmy $system = \"system\";\nprint 'open(F, x)';\n",
	"php":    "<?php // system('ls')\n$system = 'exec'; echo \"`id`\";\n",
	"lua":    "-- os.execute()\nprint('os.execute', [[io.popen()]])\n",
	"rust":   "// Command::new(\"sh\")\nfn main() { println!(\"std::process::Command\"); }\n",
	"julia":  "# run()\nprintln(\"run(`ls`)\")\n",
	"kotlin": "/* Runtime.getRuntime() /* a */ */ fun main() { println(\"Runtime.getRuntime()\") }\n",
	"csharp": "class A { static void Main() { /* Process.Start() */ System.Console.Write(@\"\\\" + \"Process.Start()\"); } }\n",
	"sql":    "-- .shell ls\nselect 'load_extension', \".system\";\n",
}

// TestDeclaredLanguages: the words of programs are read, and the policies that must know what a program does let
// none pass that is read by its words alone.
func TestDeclaredLanguages(t *testing.T) {
	for _, l := range declared.Builtin() {
		t.Run(l.Name, func(t *testing.T) {
			if len(declaredAttacks[l.Name]) == 0 || declaredHarmless[l.Name] == "" {
				t.Fatal("this test has no programs in this language, want some")
			}
			for _, name := range security.Presets() {
				c := preset(t, name)
				for _, code := range declaredAttacks[l.Name] {
					if r := check(t, c, l.Name, []byte(code)); !r.Blocked && name != "minimal" && name != "development" {
						t.Errorf("%s lets %q pass, want Blocked true: %+v", name, code, r.Findings)
					}
				}
				r := check(t, c, l.Name, []byte(declaredHarmless[l.Name]))
				if want := name == "production" || name == "strict"; r.Blocked != want {
					t.Errorf("%s: Blocked %v of a harmless program, want %v: %+v", name, r.Blocked, want, r.Findings)
				}
				if len(r.Findings) != 1 || !strings.Contains(r.Findings[0].Reason, "only the words of "+l.Title+" are read") {
					t.Errorf("%s: %+v, want only that the words alone are read", name, r.Findings)
				}
			}
		})
	}
}

// TestLanguageLoadedLater: a policy that does not know a language lets nothing in it pass.
func TestLanguageLoadedLater(t *testing.T) {
	name := fmt.Sprint("later", len(all.All())) // another one each time: it stays loaded
	before := preset(t, "development")
	text := strings.Replace(string(declared.Builtin()[0].Declaration), "name = \"csharp\"", "name = \""+name+"\"", 1)
	for _, key := range []string{"aliases", "extensions"} {
		text = strings.Replace(text, "\n"+key+" = ", "\n#", 1)
	}
	if _, err := all.LoadText("later.toml", []byte(text)); err != nil {
		t.Fatal(err)
	}
	code := []byte("class A {}")
	if r := check(t, before, name, code); !r.Blocked || !strings.Contains(r.Findings[0].Reason, "before the language C# was loaded") {
		t.Errorf("%+v, want it refused because the policy does not know the language", r)
	}
	if _, err := before.CheckLibraries(name, []string{"a"}); err != nil {
		t.Error(err)
	}
	if r := check(t, preset(t, "development"), name, code); r.Blocked {
		t.Errorf("%+v, want it let pass by a policy that was compiled later", r)
	}
}

// TestLanguageWithoutWords: a language whose file says nothing for policies passes none that refuses anything.
func TestLanguageWithoutWords(t *testing.T) {
	name := fmt.Sprint("wordless", len(all.All()))
	text := fmt.Sprintf("name = %q\ntitle = \"Wordless\"\nprograms = [[\"sh\"]]\ninstall = \"i\"\nmain = \"main.x\"\nrun = [\"sh\", \"{main}\"]\ndetails = { version = [\"sh\"] }\n", name)
	if _, err := all.LoadText("wordless.toml", []byte(text)); err != nil {
		t.Fatal(err)
	}
	for _, preset := range security.Presets() {
		p, err := security.Preset(preset)
		if err != nil {
			t.Fatal(err)
		}
		c, err := security.Compile(p)
		if err != nil {
			t.Fatal(err)
		}
		if r := check(t, c, name, []byte("echo 1")); !r.Blocked || !strings.Contains(r.Findings[0].Reason, "code in Wordless cannot be looked at") {
			t.Errorf("%s: %+v, want it refused because it cannot be looked at", preset, r)
		}
	}
}
