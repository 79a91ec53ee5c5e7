package python

import "github.com/llmsandbox/llmsandbox/internal/language"

var details = language.Details{
	UseCases:       []string{"data analysis and numbers", "plots", "machine learning", "text processing", "scripts of all kinds"},
	PackageManager: "pip",
	Version:        []string{"python3", "--version"},
	Known: []string{
		"numpy", "pandas", "matplotlib", "seaborn", "plotly", "scipy", "sklearn", "skimage", "PIL", "sympy", "statsmodels",
		"networkx", "requests", "httpx", "bs4", "lxml", "openpyxl", "docx", "pyarrow", "yaml", "cv2", "torch",
	},
	Present: func(names []string) []string {
		const find = "import sys\nfrom importlib.util import find_spec\nfor n in sys.argv[1:]:\n    if find_spec(n): print(n)"
		return append([]string{"python3", "-c", find}, names...)
	},
	Examples: []language.Example{
		{Title: "Hello", Description: "Prints a line.", Code: "print(\"Hello from Python!\")\n"},
		{
			Title: "Group and sum", Description: "Adds up figures by their key, with the standard library alone.",
			Code: `from collections import Counter

sales = [("north", 120), ("south", 80), ("north", 45)]
total = Counter()
for region, amount in sales:
    total[region] += amount
for region, amount in total.most_common():
    print(region, amount)
`,
		},
		{
			Title: "Two plots", Description: "Every figure that is shown comes back as a picture, in its order.", Libraries: []string{"matplotlib", "numpy"},
			Code: `import matplotlib.pyplot as plt
import numpy as np

x = np.linspace(0, 10, 200)
plt.plot(x, np.sin(x))
plt.title("sine")
plt.show()

plt.hist(np.random.default_rng(1).normal(size=500), bins=20)
plt.title("normal")
plt.show()
`,
		},
		{
			Title: "A file as a result", Description: "What is written below the folder artifacts comes back with the result.",
			Code: `import csv, os

os.makedirs("artifacts", exist_ok=True)
with open("artifacts/squares.csv", "w", newline="") as f:
    out = csv.writer(f)
    out.writerow(["n", "square"])
    out.writerows([n, n * n] for n in range(5))
print("written")
`,
		},
	},
}
