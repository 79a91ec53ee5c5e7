package e2e

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
)

// TestDataScience installs the built-in environment from the registries, which takes minutes: .ci/nightly does.
func TestDataScience(t *testing.T) {
	if os.Getenv("LLMSANDBOX_TEST_DATA_SCIENCE") == "" {
		t.Skip("it installs 600 MB: set LLMSANDBOX_TEST_DATA_SCIENCE=1")
	}
	o := llmsandbox.Options{
		Environment: llmsandbox.DataScience, BestEffort: true,
		Install: llmsandbox.InstallOptions{Timeout: 20 * time.Minute}, Limits: llmsandbox.Limits{Timeout: 5 * time.Minute, Memory: 1 << 30},
	}
	const code = `import importlib
for name in "numpy pandas scipy sklearn matplotlib seaborn plotly requests openpyxl PIL sympy".split():
    assert importlib.import_module(name).__file__.startswith("/tmp/.llmsandbox-lib-"), name
import matplotlib.pyplot as plt, numpy as np, pandas as pd, scipy.stats, sklearn.linear_model
x = np.arange(10.0)
print(scipy.stats.linregress(x, 2 * x + 1).slope, sklearn.linear_model.LinearRegression().fit(x[:, None], x).score(x[:, None], x))
pd.DataFrame({"x": x}).to_excel("x.xlsx")
print(int(pd.read_excel("x.xlsx").x.sum()))
plt.plot(x)
plt.show()
`
	for _, offline := range []bool{false, true} {
		o.Install.Offline = offline
		res, err := open(t, o).Run(testContext(t), code, nil)
		if err != nil || res.Stdout != "2.0 1.0\n45\n" || len(res.Artifacts) != 1 {
			t.Fatalf("%+v, %v, want Stdout = \"2.0 1.0\\n45\\n\" and 1 artifact", res, err)
		}
	}
	list, err := llmsandbox.Environments(testContext(t), &o)
	if err != nil || len(list) != 1 || !list[0].Installed || !strings.Contains(strings.Join(list[0].Packages, " "), "numpy==") {
		t.Errorf("Environments() = %+v, %v, want data-science, installed", list, err)
	}
}
