package seccomp

import (
	"context"
	"embed"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

//go:embed testdata/programs
var sources embed.FS

// missing skips, or fails where the machine is meant to have everything.
func missing(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("LLMSANDBOX_REQUIRE") == "1" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// filtered runs a program under a filter, in dir.
func filtered(t *testing.T, filter, dir string, argv ...string) (string, error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path, err := exec.LookPath(argv[0])
	if err != nil {
		missing(t, err.Error())
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, self, append([]string{path}, argv[1:]...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), underFilter+"="+filter, "TMPDIR="+t.TempDir()) // not every runtime tidies up
	if filter != "usual" {
		cmd.Env = append(cmd.Env, "NO_SOCKETS=1")
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// Each program prints "works" as its last line when all it tried did.
func TestProgramsWork(t *testing.T) {
	for _, filter := range []string{"usual", "process-shared"} { // the strictest of the others
		t.Run(filter, func(t *testing.T) { testPrograms(t, filter) })
	}
}

func testPrograms(t *testing.T, filter string) {
	cases := []struct {
		name string
		file string     // in testdata/programs
		argv [][]string // run in order, in a directory that holds file
		need []string   // succeeds without the filter, or the test is skipped
	}{
		{"python", "threads.py", [][]string{{"python3", "threads.py"}}, nil},
		{"numpy", "plot.py", [][]string{{"/usr/bin/python3", "plot.py"}}, []string{"/usr/bin/python3", "-c", "import numpy, pandas, matplotlib"}},
		{"pip", "", [][]string{{"/usr/bin/python3", "-m", "venv", "v"}, {"v/bin/pip", "list"}, {"echo", "works"}}, []string{"/usr/bin/python3", "-c", "import ensurepip"}},
		{"jvm", "Threads.java", [][]string{{"javac", "Threads.java"}, {"java", "-Xmx128m", "Threads"}, {"java", "-XX:+UseG1GC", "-Xmx128m", "Threads"}}, nil},
		{"jvm-source", "Threads.java", [][]string{{"java", "-Xmx256m", "Threads.java"}}, nil},
		{"node", "workers.js", [][]string{{"node", "workers.js"}}, nil},
		{"npm", "", [][]string{{"npm", "--version"}, {"echo", "works"}}, nil},
		{"go", "routines.go", [][]string{{"go", "build", "-o", "p", "routines.go"}, {"./p"}}, nil},
		{"c++", "regex.cpp", [][]string{{"g++", "-std=c++17", "-O1", "-pthread", "-o", "p", "regex.cpp"}, {"./p"}}, nil},
		{"openmp", "places.c", [][]string{{"gcc", "-fopenmp", "-o", "p", "places.c"}, {"env", "OMP_PROC_BIND=true", "OMP_PLACES=threads", "./p"}}, nil},
		{"r", "plot.R", [][]string{{"Rscript", "plot.R"}}, []string{"Rscript", "-e", "library(ggplot2)"}},
		{"ruby", "fibers.rb", [][]string{{"ruby", "fibers.rb"}}, nil},
		{"bash", "jobs.sh", [][]string{{"bash", "jobs.sh"}}, nil},
		{"git", "repo.sh", [][]string{{"bash", "repo.sh"}}, []string{"git", "--version"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if c.need != nil {
				if out, err := exec.Command(c.need[0], c.need[1:]...).CombinedOutput(); err != nil {
					missing(t, strings.Join(c.need, " ")+": "+err.Error()+"\n"+string(out))
				}
			}
			dir := t.TempDir()
			if c.file != "" {
				source, err := sources.ReadFile("testdata/programs/" + c.file)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, c.file), source, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			var last string
			for _, argv := range c.argv {
				if strings.Contains(argv[0], "/") && !filepath.IsAbs(argv[0]) {
					argv = append([]string{filepath.Join(dir, argv[0])}, argv[1:]...)
				}
				out, err := filtered(t, filter, dir, argv...)
				if err != nil {
					t.Fatalf("%q: %v\n%s", argv, err, out)
				}
				last = out
			}
			if !strings.HasSuffix(strings.TrimSpace(last), "works") {
				t.Fatalf("the program did not say that it works, want it to end in \"works\":\n%s", last)
			}
		})
	}
}
