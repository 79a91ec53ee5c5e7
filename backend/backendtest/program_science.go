package backendtest

import (
	"fmt"
	"testing"

	"github.com/llmsandbox/llmsandbox"
)

func (s *suite) programNumpyPandasMatplotlib(t *testing.T) {
	o := llmsandbox.Options{Language: "python"}
	if s.Image == nil {
		o.Env = systemPython
	}
	sb := s.science(t, o, "python3", "-c", "import numpy, pandas, matplotlib")
	res := run(t, sb, `
import io
import numpy as np
import pandas as pd
import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt

rng = np.random.default_rng(7)
a = rng.standard_normal((300, 300))
x = np.arange(300.0)
assert np.allclose(np.linalg.solve(a, a @ x), x)
u, s, vt = np.linalg.svd(a)
assert np.allclose(u @ np.diag(s) @ vt, a)
w = np.linalg.eigvalsh(np.array([[2.0, 1], [1, 2]]))
print("eigenvalues", *w.round(6))

df = pd.read_csv(io.StringIO("city,year,n\nRome,2020,1\nOslo,2020,10\nRome,2021,2\nOslo,2021,20\n"))
print(df.groupby("city")["n"].agg(["sum", "mean"]).to_csv(), end="")
print(df.pivot(index="year", columns="city", values="n").loc[2021, "Oslo"])

fig, axes = plt.subplots(1, 2, figsize=(8, 4))
axes[0].plot(np.linspace(0, 6, 100), np.sin(np.linspace(0, 6, 100)), label="sin")
axes[0].legend()
axes[1].hist(rng.standard_normal(1000), bins=30)
fig.suptitle("two figures")
fig.savefig("figure.png")
`, nil)
	wantLines(t, res, "eigenvalues 1.0 3.0", "city,sum,mean", "Oslo,30,15.0", "Rome,3,1.5", "20")
	wantPicture(t, sb, "figure.png")
}

// science opens a sandbox for a language and asks for its packages: load is a command
// that succeeds where they are.
func (s *suite) science(t *testing.T, o llmsandbox.Options, load ...string) *llmsandbox.Sandbox {
	t.Helper()
	s.has(t, Science)
	sb := s.open(t, o)
	res, err := sb.Exec(testContext(t), load, nil)
	require(t, err == nil && res.OK(), fmt.Sprintf("%q fails: install the packages in the image, or on this machine (make test-deps)", load))
	return sb
}

// systemPython makes code of python run as the system's own interpreter where there is
// another one first in PATH: the packages belong to the system's.
var systemPython = map[string]string{"PATH": "/usr/bin:/bin", "PYTHONHOME": "", "LD_LIBRARY_PATH": ""}

func (s *suite) programR(t *testing.T) {
	sb := s.science(t, llmsandbox.Options{Language: "r"}, "Rscript", "-e", "library(ggplot2)")
	res := run(t, sb, `
library(ggplot2)
fit <- lm(mpg ~ wt, data = mtcars)
cat(round(coef(fit), 3), "\n")
m <- matrix(c(2, 1, 1, 3), 2)
cat(round(solve(m) %*% m, 9), "\n")
cat(tapply(mtcars$mpg, mtcars$cyl, function(x) round(mean(x), 2)), "\n")
ggsave("figure.png", ggplot(mtcars, aes(wt, mpg, colour = factor(cyl))) + geom_point() + geom_smooth(method = "lm", formula = y ~ x), width = 5, height = 4, dpi = 100)
png("base.png"); hist(mtcars$mpg); invisible(dev.off())
cat(unlist(parallel::mclapply(1:3, function(n) n^2, mc.cores = 2)), "\n")
`, nil)
	wantLines(t, res, "37.285 -5.344 ", "1 0 0 1 ", "26.66 19.74 15.1 ", "1 4 9 ")
	wantPicture(t, sb, "figure.png")
	wantPicture(t, sb, "base.png")
}
