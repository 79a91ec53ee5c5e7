package r

import (
	"bytes"
	"encoding/json"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/artifact"
	"github.com/llmsandbox/llmsandbox/internal/language"
)

// A captured run of the machine's own R.
type captured struct {
	artifacts      []artifact.Artifact
	dropped        string
	stdout, stderr string
	exit           int
	dir            string // where the program ran
}

func require(t *testing.T, ok bool, why string) {
	t.Helper()
	if ok {
		return
	}
	if os.Getenv("LLMSANDBOX_REQUIRE") == "1" {
		t.Fatalf("cannot run here: %s", why)
	}
	t.Skip(why)
}

// runR runs a program with a capture, or without one.
func runR(t *testing.T, code string, with bool, packages ...string) captured {
	t.Helper()
	rscript, err := exec.LookPath("Rscript")
	require(t, err == nil, "Rscript is not installed: apt-get install r-base-core")
	for _, p := range packages {
		err := exec.Command(rscript, "--vanilla", "-e", "loadNamespace('"+p+"')").Run()
		require(t, err == nil, "R has no package "+p+": apt-get install r-cran-"+p)
	}
	root := t.TempDir()
	c := captured{dir: filepath.Join(root, "work")}
	directory, support := filepath.Join(root, "capture"), filepath.Join(root, "support")
	for _, dir := range []string{c.dir, directory, support} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	main := filepath.Join(root, "main.R")
	cmd := exec.Command(rscript, append(argv(language.Source{Program: func(names ...string) string { return names[0] }})[1:], main)...)
	cmd.Dir, cmd.Env = c.dir, append(os.Environ(), "R_PROFILE=/dev/null", "LC_ALL=C.UTF-8") // as in a sandbox
	files := []language.File{{Path: main, Data: []byte(code), Mode: 0o644}}
	if with {
		capture := capture(language.CaptureSource{Dir: directory, Support: support, Current: func(string) string { return "/dev/null" }})
		cmd.Env = append(cmd.Env, capture.Env...)
		files = append(files, capture.Files...)
	}
	for _, f := range files {
		if err := os.WriteFile(f.Path, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	c.stdout, c.stderr, c.exit = stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
	note, err := os.ReadFile(filepath.Join(directory, "dropped"))
	if err == nil {
		c.dropped = string(note)
	}
	descriptions, err := filepath.Glob(filepath.Join(directory, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range descriptions {
		var a artifact.Artifact
		text, err := os.ReadFile(path)
		if err == nil {
			err = json.Unmarshal(text, &a)
		}
		if err == nil {
			a.Data, err = os.ReadFile(strings.TrimSuffix(path, ".json") + ".data")
		}
		if err != nil {
			t.Fatalf("%s: %v\n%s", path, err, text)
		}
		if got := artifact.Verify(a.MIME, a.Data); got != a.MIME {
			t.Errorf("%s is said to be %s and is %s", a.Name, a.MIME, got)
		}
		c.artifacts = append(c.artifacts, a)
	}
	return c
}

func (c captured) want(t *testing.T, titles ...string) {
	t.Helper()
	var got []string
	for _, a := range c.artifacts {
		got = append(got, strings.Join([]string{a.Name, a.Source, a.Title}, " | "))
	}
	if !slices.Equal(got, titles) || c.dropped != "" {
		t.Errorf("captured\n%s\nwant\n%s\nleft out: %s\nstderr: %s", strings.Join(got, "\n"), strings.Join(titles, "\n"), c.dropped, c.stderr)
	}
	if _, err := os.Stat(filepath.Join(c.dir, "Rplots.pdf")); err == nil {
		t.Error("there is an Rplots.pdf: got no error, want an error")
	}
}

func TestCaptureBaseGraphics(t *testing.T) {
	c := runR(t, `
plot(1:4, main = "A \"plot\" \\ é")
hist(c(1, 2, 2, 3), main = "Counts")
boxplot(list(a = 1:9, b = 2:8), main = "Boxes")
par(mfrow = c(1, 2)); pie(c(1, 2), main = "Pie"); curve(sin, 0, 6)
par(mfrow = c(1, 1)); barplot(1:3); lines(1:3, 1:3)
cat("printed\n")
`, true)
	c.want(t, `plot-1.png | graphics | A "plot" \ é`, "plot-2.png | graphics | Counts", "plot-3.png | graphics | Boxes",
		"plot-4.png | graphics | ", "plot-5.png | graphics | ")
	if c.stdout != "printed\n" || c.stderr != "" || c.exit != 0 {
		t.Errorf("%q, %q, %d, want stdout = \"printed\\n\", stderr empty, exit = 0", c.stdout, c.stderr, c.exit)
	}
	for _, a := range c.artifacts {
		if s := artifact.SizeOf(a.MIME, a.Data); s != (artifact.Size{Width: 800, Height: 600, DPI: 100}) {
			t.Errorf("%s: %+v, want %+v", a.Name, s, artifact.Size{Width: 800, Height: 600, DPI: 100})
		}
	}
}

// TestCaptureDevices has the program's own files: each once, of its own type, and where
// the program wants it.
func TestCaptureDevices(t *testing.T) {
	c := runR(t, `
png("a.png"); plot(1:3, main = "first"); dev.off()
svg("b.svg"); plot(1:3); invisible(dev.off())
jpeg("c%02d.jpg"); plot(1:3); plot(3:1); invisible(dev.off())
pdf("d.pdf"); plot(1:3); plot(3:1)
png("empty.png")
`, true)
	c.want(t, "a.png | graphics | first", "b.svg | graphics | ", "c01.jpg | graphics | ", "c02.jpg | graphics | ", "d.pdf | graphics | ")
	if want := "null device \n          1 \n"; c.stdout != want || c.exit != 0 {
		t.Errorf("%q, %d, want stdout = %q, exit = 0", c.stdout, c.exit, want)
	}
	for _, name := range []string{"a.png", "b.svg", "c01.jpg", "c02.jpg", "d.pdf"} {
		if _, err := os.Stat(filepath.Join(c.dir, name)); err != nil {
			t.Error(err)
		}
	}
}

func TestCaptureGrid(t *testing.T) {
	c := runR(t, `
library(ggplot2)
p <- ggplot(mtcars, aes(wt, mpg)) + geom_point(colour = "#FF0000") + ggtitle("Cars")
p
print(p + labs(title = "Again"))
ggsave("saved.png", p, width = 4, height = 3, dpi = 100)
lattice::xyplot(mpg ~ wt, data = mtcars, main = "Lattice")
grid::grid.newpage(); grid::grid.rect(gp = grid::gpar(fill = "#00FF00"))
stop("it ends here")
`, true, "ggplot2", "lattice")
	c.want(t, "plot-1.png | ggplot2 | Cars", "plot-2.png | ggplot2 | Again", "saved.png | ggplot2 | Cars", "plot-3.png | lattice | Lattice", "plot-4.png | grid | ")
	if c.exit != 1 || c.stderr != "Error: it ends here\nExecution halted\n" {
		t.Errorf("%d, %q, want exit = 1, stderr = \"Error: it ends here\\nExecution halted\\n\"", c.exit, c.stderr)
	}
	for i, colour := range []uint32{0xff0000, 0xff0000, 0xff0000, 0, 0x00ff00} {
		if colour == 0 || len(c.artifacts) <= i {
			continue
		}
		if n := pixels(t, c.artifacts[i].Data, colour); n < 100 {
			t.Errorf("%s has %d pixels of colour %06x, want at least 100", c.artifacts[i].Name, n, colour)
		}
	}
}

func pixels(t *testing.T, data []byte, colour uint32) (n int) {
	t.Helper()
	img, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	for y := range img.Bounds().Dy() {
		for x := range img.Bounds().Dx() {
			if r, g, b, _ := img.At(x, y).RGBA(); r>>8<<16|g>>8<<8|b>>8 == colour {
				n++
			}
		}
	}
	return n
}

func TestCaptureWidgets(t *testing.T) {
	c := runR(t, `
suppressPackageStartupMessages(library(plotly))
p <- plot_ly(x = 1:3, y = c(2, 1, 3), type = "scatter", mode = "lines")
p
print(p)
x <- p
quit(status = 4)
`, true, "plotly")
	c.want(t, "plotly.html | plotly | ", "plotly.html | plotly | ")
	if c.exit != 4 || c.stdout != "" {
		t.Errorf("%d, %q, want exit = 4, stdout empty", c.exit, c.stdout)
	}
	for _, a := range c.artifacts {
		text := string(a.Data)
		if strings.Contains(text, `src="lib/`) || strings.Contains(text, `href="lib/`) || !strings.Contains(text, "HTMLWidgets") || len(text) < 1<<20 {
			t.Errorf("the page of %d bytes does not stand alone, want text without \"src=\\\"lib/\", text without \"href=\\\"lib/\", text containing \"HTMLWidgets\", len(text) >= 1 MiB", len(text))
		}
	}
}

// TestCaptureChangesNothing has a program that does not plot: it sees R as it is without us.
func TestCaptureChangesNothing(t *testing.T) {
	const code = `
print(search()); print(ls(all.names = TRUE)); print(.Devices); print(Sys.getenv("R_LIBS")); print(getOption("repos"))
print(tryCatch(dev.off(), error = conditionMessage)); print(dev.list()); f <- function() stop("there"); f()
`
	with, without := runR(t, code, true), runR(t, code, false)
	with.want(t)
	if with.stdout != without.stdout || with.stderr != without.stderr || with.exit != without.exit {
		t.Errorf("with, want stdout = %s, stderr = %s, exit = %v:\n%s%s\nwithout:\n%s%s", without.stdout, without.stderr, without.exit, with.stdout, with.stderr, without.stdout, without.stderr)
	}
}

// TestCaptureFailureIsNoFailure takes the capture directory away.
func TestCaptureFailureIsNoFailure(t *testing.T) {
	c := runR(t, `unlink(file.path(dirname(getwd()), c("capture", "support")), recursive = TRUE); plot(1); cat("on\n"); plot(2); cat("ended\n")`, true)
	if c.stdout != "on\nended\n" || c.stderr != "" || c.exit != 0 || len(c.artifacts) > 0 {
		t.Errorf("%q, %q, %d artifacts, want stdout = \"on\\nended\\n\", stderr empty, exit = 0, no artifacts", c.stdout, c.stderr, len(c.artifacts))
	}
}

func TestQuoted(t *testing.T) {
	c := runR(t, `cat(`+"\""+quoted("a\"b\\c\nd@é")+"\""+`)`, false)
	if c.stdout != "a\"b\\c\nd@é" {
		t.Errorf("%q, want \"a\\\"b\\\\c\\nd@é\"", c.stdout)
	}
}

// TestFlush is of what a kernel calls after each cell.
func TestFlush(t *testing.T) {
	c := runR(t, `
flush <- getOption("llmsandbox.flush")
shown <- function() length(list.files(file.path(dirname(getwd()), "capture"), "json$"))
flush(); cat(shown(), "")
plot(1, main = "one"); flush(); cat(shown(), "")
flush(); plot(2, main = "two"); flush(); cat(shown(), "\n")
`, true)
	c.want(t, "plot-1.png | graphics | one", "plot-2.png | graphics | two")
	const want = "0 1 2 \n"
	if c.stdout != want || c.stderr != "" {
		t.Errorf("%q, want %q\nstderr: %s", c.stdout, want, c.stderr)
	}
}
