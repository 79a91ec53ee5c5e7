package backendtest

import (
	"bytes"
	"image/png"
	"slices"
	"testing"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/artifact"
)

// wantColour checks that an artifact is a PNG of a size with a good number of pixels of
// a colour.
func wantColour(t testing.TB, a llmsandbox.Artifact, width, height int, colour uint32) {
	t.Helper()
	img, err := png.Decode(bytes.NewReader(a.Data))
	if err != nil || a.MIME != artifact.PNG {
		t.Fatalf("%s of type %s is no PNG: %v, want no error, MIME = PNG", a.Name, a.MIME, err)
	}
	size := img.Bounds().Size()
	if size.X != width || size.Y != height || a.Width != width || a.Height != height {
		t.Errorf("%s is %v and said to be %d by %d; want %d by %d", a.Name, size, a.Width, a.Height, width, height)
	}
	n := 0
	for y := range size.Y {
		for x := range size.X {
			if r, g, b, _ := img.At(x, y).RGBA(); r>>8<<16|g>>8<<8|b>>8 == colour {
				n++
			}
		}
	}
	if n < 100 {
		t.Errorf("%s has %d pixels of colour #%06x, want at least 100", a.Name, n, colour)
	}
}

func (s *suite) acceptance52PlotsOfR(t *testing.T) {
	sb := s.openWith(t, llmsandbox.Options{Language: "r"}, "Rscript")
	const three = `
plot(1:10, main = "Points", pch = 16, cex = 3, col = "#FF0000")
hist(c(1, 2, 2, 3), main = "Counts", col = "#00FF00")
boxplot(list(a = 1:9), main = "Boxes", col = "#0000FF")
cat("done\n")
`
	res := run(t, sb, three, nil)
	wantExit(t, res, 0)
	wantStdout(t, res, "done\n")
	wantArtifacts(t, res, "plot-1.png", "plot-2.png", "plot-3.png")
	for i, colour := range []uint32{0xff0000, 0x00ff00, 0x0000ff} {
		a := res.Artifacts[i]
		wantColour(t, a, 800, 600, colour)
		if title := []string{"Points", "Counts", "Boxes"}[i]; a.Title != title || a.DPI != 100 || a.Source != "graphics" {
			t.Errorf("%s is titled %q, of %v dots per inch, from %s, want Title = %q, DPI = 100, Source = \"graphics\"", a.Name, a.Title, a.DPI, a.Source, title)
		}
	}
	count := func(want int) {
		t.Helper()
		if got, dropped := sb.Artifacts(); len(got) != want || len(dropped) > 0 {
			t.Errorf("the sandbox has %q, without %q; want %d", artifactNames(got), dropped, want)
		}
	}
	count(3)
	wantArtifacts(t, run(t, sb, `pie(1:3); barplot(1:3)`, nil), "plot-1.png", "plot-2.png")
	count(5)
	wantArtifacts(t, run(t, sb, `cat("no plot\n")`, nil))
	count(5)
	sb.ClearArtifacts()
	run(t, sb, `plot(1); plot(2)`, nil)
	count(2)
	sb.ClearArtifacts()
	saved := run(t, sb, `dir.create("artifacts", FALSE); png("artifacts/saved.png", 320, 240); plot(1:3); invisible(dev.off())`, nil)
	wantArtifacts(t, saved, "saved.png") // once, though it is captured and in the directory
	count(1)
	if _, err := sb.Stat(testContext(t), "Rplots.pdf"); err == nil {
		t.Error("there is an Rplots.pdf: got no error, want an error")
	}
	killed := run(t, sb, `plot(1); plot(2); cat("ready\n"); Sys.sleep(600)`, &llmsandbox.RunOptions{Timeout: 8e9})
	wantStatus(t, killed, llmsandbox.StatusTimeout)
	wantArtifacts(t, killed, "plot-1.png") // the page that was whole
}

func (s *suite) acceptance58GGPlot(t *testing.T) {
	sb := s.science(t, llmsandbox.Options{Language: "r"}, "Rscript", "-e", "library(ggplot2)")
	res := run(t, sb, `
library(ggplot2)
p <- ggplot(mtcars, aes(wt, mpg)) + geom_point(colour = "#FF0000", size = 4) + ggtitle("Cars")
p
ggsave("saved.pdf", p, width = 4, height = 3)
lattice::xyplot(mpg ~ wt, data = mtcars, main = "Lattice", pch = 16, cex = 3, col = "#0000FF")
`, nil)
	wantExit(t, res, 0)
	wantArtifacts(t, res, "plot-1.png", "saved.pdf", "plot-2.png")
	wantColour(t, res.Artifacts[0], 800, 600, 0xff0000)
	wantColour(t, res.Artifacts[2], 800, 600, 0x0000ff)
	if a := res.Artifacts[0]; a.Title != "Cars" || a.Source != "ggplot2" {
		t.Errorf("titled %q, from %s, want Title = \"Cars\", Source = \"ggplot2\"", a.Title, a.Source)
	}
	if a := res.Artifacts[1]; a.MIME != artifact.PDF {
		t.Errorf("%s is %s, want PDF", a.Name, a.MIME)
	}
}

// artifactsOfRCells has cells that draw: each has what it drew, and a file it wrote.
func (s *suite) artifactsOfRCells(t *testing.T) {
	sb := s.openWith(t, llmsandbox.Options{Language: "r"}, "Rscript")
	ctx := testContext(t)
	k, err := sb.Kernel(ctx, "r", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	for _, c := range []struct {
		code string
		want []string
	}{
		{`plot(1)`, []string{"plot-1.png"}},
		{`1 + 1`, nil},
		{`hist(c(1, 2, 2)); plot(2)`, []string{"plot-2.png", "plot-3.png"}},
		{`writeLines("x", "artifacts/made.txt")`, []string{"made.txt"}},
	} {
		cell, err := k.Run(ctx, c.code, nil)
		if err != nil || cell.Status != llmsandbox.StatusOK {
			t.Fatalf("%s: %+v, %v, want no error, Status = StatusOK", c.code, cell, err)
		}
		if got := artifactNames(cell.Artifacts); !slices.Equal(got, c.want) || len(cell.ArtifactsDropped) > 0 {
			t.Errorf("%s: artifacts %q, want %q; left out: %q", c.code, got, c.want, cell.ArtifactsDropped)
		}
	}
}
