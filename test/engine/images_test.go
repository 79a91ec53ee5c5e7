//go:build linux

package engine

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox/internal/language/all"
	"github.com/llmsandbox/llmsandbox/internal/testengine"
)

// programs show that an image has what it is for: each prints "hello" at its end.
var programs = map[string]struct{ file, command, code string }{
	"bash":       {"main.sh", "bash main.sh", `set -e; jq -n 1 >/tmp/one; echo '1+1' | bc; gawk 'BEGIN { print "hello" }'`},
	"typescript": {"main.js", "node main.js", `console.log("hello")`}, // the sandbox makes JavaScript of it
	"c": {"main.c", "gcc -std=gnu17 -o /tmp/main main.c && /tmp/main",
		"#include <stdio.h>\nint main(void) { puts(\"hello\"); }"},
	"cpp": {"main.cpp", "g++ -std=c++20 -o /tmp/main main.cpp && /tmp/main",
		"#include <iostream>\n#include <vector>\nint main() { std::vector<const char *> v{\"hello\"}; std::cout << v.at(0) << '\\n'; }"},
	"go": {"main.go", "GOCACHE=/tmp/cache CGO_ENABLED=0 go run main.go",
		"package main\n\nimport \"fmt\"\n\nfunc main() { for range 1 { fmt.Println(\"hello\") } }"},
	"java": {"Main.java", "javac -d /tmp Main.java && java -cp /tmp Main",
		`record R(String s) {} public class Main { public static void main(String[] a) { System.out.println(new R("hello").s()); } }`},
	"javascript": {"main.js", "node main.js", `console.log([["hello"]].flat()[0])`},
	"python": {"main.py", "python3 main.py", `
import numpy, pandas, seaborn, scipy.stats, sklearn.linear_model, plotly.express, PIL.Image
import matplotlib; matplotlib.use("Agg")
import matplotlib.pyplot as plt
table = pandas.DataFrame({"x": numpy.arange(5.0), "y": numpy.arange(5.0) * 2})
seaborn.lineplot(table, x="x", y="y")
plt.savefig("/tmp/plot.png")
assert PIL.Image.open("/tmp/plot.png").format == "PNG"
assert abs(sklearn.linear_model.LinearRegression().fit(table[["x"]], table["y"]).coef_[0] - 2) < 1e-9
assert scipy.stats.linregress(table["x"], table["y"]).slope == 2
assert "plotly" in plotly.express.line(table, x="x", y="y").to_html()
print("hello")`},
	"r": {"main.R", "Rscript --vanilla main.R", `
suppressPackageStartupMessages({
  for (p in c("data.table", "dplyr", "ggplot2", "gridExtra", "jsonlite", "lubridate", "plotly", "RColorBrewer", "readr",
              "stringr", "tibble", "tidyr", "viridis", "zoo")) library(p, character.only = TRUE)
})
t <- tibble(x = 1:5) %>% mutate(y = x * 2)
p <- ggplot(t, aes(x, y)) + geom_line()
pdf("/tmp/plot.pdf"); print(p); invisible(dev.off())
stopifnot(file.size("/tmp/plot.pdf") > 0, inherits(ggplotly(p), "plotly"))
cat("hello\n")`},
	"ruby": {"main.rb", "ruby main.rb", `require "json"; puts JSON.parse('["hello"]').first`},
}

// Each language's default image runs the language, with its libraries, as an ordinary
// user, without a network, on each engine.
func TestDefaultImages(t *testing.T) {
	for _, engine := range engines {
		t.Run(engine.name, func(t *testing.T) {
			e := engine.start(t)
			image := e.Images(t)
			for _, l := range all.Coded() {
				t.Run(l.Name, func(t *testing.T) {
					p, ok := programs[l.Name]
					if !ok {
						t.Fatal("this test has no program in this language: ok = false, want true")
					}
					out := run(t, e, p.code, image(l.Name), "cat >"+p.file+" && id -u && id -g && pwd && "+p.command)
					if want := "1000\n1000\n/sandbox\n"; !strings.HasPrefix(out, want) {
						t.Errorf("the code's user, group and directory are not %q:\n%s", want, out)
					}
					if !strings.HasSuffix(out, "hello\n") {
						t.Errorf("the program did not say hello, want it to end in \"hello\\n\":\n%s", out)
					}
				})
			}
		})
	}
}

// run runs a shell command in a new container and returns what it printed.
func run(t *testing.T, e *testengine.Engine, stdin, image, command string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "docker", "run", "--rm", "-i", "--network=none", image, "sh", "-c", command)
	cmd.Env = append(os.Environ(), "DOCKER_HOST="+e.Host)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s%s", err, &stdout, &stderr)
	}
	return stdout.String()
}
