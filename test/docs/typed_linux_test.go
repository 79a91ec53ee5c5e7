package docs_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/testcommand"
)

// onlyElsewhere are commands that this test cannot type, by what they need. Engines' pages have tests of their own.
var onlyElsewhere = map[string]*regexp.Regexp{
	"an engine or a cluster": regexp.MustCompile(`--backend (docker|podman|kubernetes|micromamba)\b|^docker `),
	"an environment":         regexp.MustCompile(`llmsandbox setup|--environment|environments (ls|show web|rm web)|template warm data|--template data`), // of 600 MB; environments.txtar and template.txtar type the like
	"another program":        regexp.MustCompile(`^claude |^llmsandbox serve`),                                                                          // test/server types its page
	"the internet":           regexp.MustCompile(`https://`),
}

// readersFiles are what the pages take for granted in the reader's directory.
var readersFiles = map[string]string{
	"data.csv":            "b,2\na,1\n",
	"data/data.csv":       "b,2\na,1\n",
	"script.py":           "import glob, shutil\nfor name in glob.glob('**/data.csv', recursive=True):\n    shutil.copy(name, 'result.csv')\n",
	"sales.csv":           "region,revenue\nnorth,10\nsouth,20\nnorth,30\n",
	"report.py":           "import pandas as pd\nimport matplotlib.pyplot as plt\npd.read_csv('sales.csv').groupby('region').revenue.sum().plot.bar()\nplt.show()\n",
	"plot.py":             "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()\n",
	"analysis.ipynb":      notebook("print('analysis')"),
	"reports/first.ipynb": notebook("open('summary.csv', 'w').write('a,1')"),
	"results/README":      "",
	"app.py":              "print('app')\n",
	"sum.awk":             "{ sum += $1 } END { print sum }\n",
	"cleanup.py":          "import os\nos.system(\"date\")\n",
}

// notebook is one with a single cell.
func notebook(code string) string {
	return fmt.Sprintf(`{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [
		{"cell_type": "code", "id": "one", "metadata": {}, "source": %q, "outputs": [], "execution_count": null}]}`, code)
}

// A typed command is one of a page's console blocks, and what the page shows of its output.
type typed struct {
	command, input, output string
	code                   int
}

var exitComment = regexp.MustCompile(`#.*\bexit code (\d+)`)

// commands are the commands of a page's console blocks. A command goes on until its quotes are closed, and lines that
// begin with >>> are typed into it.
func commands(file, text string) (all []typed) {
	for _, b := range blocks(file, text) {
		if b.language != "console" {
			continue
		}
		open := false // a quote of the last command is
		for line := range strings.Lines(b.text) {
			rest, begins := strings.CutPrefix(line, "$ ")
			if begins && !open {
				all = append(all, typed{})
			}
			if len(all) == 0 {
				continue
			}
			last := &all[len(all)-1]
			switch input, ok := strings.CutPrefix(line, ">>> "); {
			case begins || open:
				last.command += rest
				open = strings.Count(last.command, "'")%2 == 1
				if m := exitComment.FindStringSubmatch(rest); m != nil {
					last.code, _ = strconv.Atoi(m[1])
				}
			case ok:
				last.input += input
			default:
				last.output += line
			}
		}
	}
	return all
}

// TestCommandsAreTyped types what README and the pages show, a page after another, each in one shell.
func TestCommandsAreTyped(t *testing.T) {
	bin, err := testcommand.In(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	examples, err := filepath.Abs(filepath.Join(root, "examples"))
	if err != nil {
		t.Fatal(err)
	}
	all := pages(t)
	count := 0
	for _, file := range slices.Sorted(maps.Keys(all)) {
		var here []typed
		for _, c := range commands(file, all[file]) {
			if needs(c.command) == "" {
				here = append(here, c)
			}
		}
		if len(here) == 0 {
			continue
		}
		count += len(here)
		t.Run(file, func(t *testing.T) { typeAll(t, bin, examples, here) })
	}
	if count < 20 {
		t.Errorf("%d commands were typed, want at least 20", count)
	}
}

func needs(command string) string {
	for what, pattern := range onlyElsewhere {
		if pattern.MatchString(command) {
			return what
		}
	}
	return ""
}

func typeAll(t *testing.T, bin, examples string, here []typed) {
	t.Helper()
	dir, logs := t.TempDir(), t.TempDir()
	for name, text := range readersFiles {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(examples, filepath.Join(dir, "examples")); err != nil {
		t.Fatal(err)
	}
	var script strings.Builder
	for i, c := range here {
		if err := os.WriteFile(filepath.Join(logs, fmt.Sprintf("%d.in", i)), []byte(c.input), 0o644); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&script, "{\n%s\n} <%[2]s/%[3]d.in >%[2]s/%[3]d.out 2>&1; echo $? >%[2]s/%[3]d.code\n", strings.TrimRight(c.command, "\n"), logs, i)
	}
	cmd := exec.Command("bash", "-c", script.String())
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "TERM=dumb", "LLMSANDBOX_STATE_DIR="+t.TempDir(), "LLMSANDBOX_CONFIG_DIR="+t.TempDir())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("bash: %v\n%s", err, out)
	}
	for i, c := range here {
		out, err := os.ReadFile(filepath.Join(logs, fmt.Sprintf("%d.out", i)))
		if err != nil {
			t.Fatal(err)
		}
		code, err := os.ReadFile(filepath.Join(logs, fmt.Sprintf("%d.code", i)))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.TrimSpace(string(code)); got != strconv.Itoa(c.code) {
			t.Errorf("%s: exit code %s, want %d\n%s", strings.TrimSpace(c.command), got, c.code, out)
		}
		if c.output != "" && strings.TrimSpace(string(out)) != strings.TrimSpace(c.output) {
			t.Errorf("%s: got\n%s\nwant\n%s", strings.TrimSpace(c.command), out, c.output)
		}
	}
}
