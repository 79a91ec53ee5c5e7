// Package python describes Python.
package python

import (
	_ "embed"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/language/source"
)

// Language is Python 3.
var Language = language.Language{
	Name: "python", Title: "Python", Aliases: []string{"py", "python3"},
	Extensions: []string{".py", ".pyw"}, Shebangs: []string{"python3", "python"},
	Programs: [][]string{{"python3", "python"}},
	Install:  "install it with: apt-get install python3; or use --image python:3",
	Plan:     plan, Libraries: &libraries, Kernel: &kernel, Capture: capture, Ahead: &language.Ahead{Capture: ahead, Forks: true, Driver: driverProgram, Settable: settable, Args: true, Module: isModule},
	Scan: scan, ModuleSeparator: ".", LibraryName: libraryName, Missing: &missing,
	Details: details, Env: environment,
}

// environment is for pip in a sandbox.
var environment = []string{
	// Debian's pip refuses to install beside the system's packages. Here it installs below HOME, since the system is read-only.
	"PIP_BREAK_SYSTEM_PACKAGES=1",
	// Without a network, or to a refused host, each retry only takes longer. One says why it fails.
	"PIP_RETRIES=1",
	"PIP_DISABLE_PIP_VERSION_CHECK=1",
}

func plan(src language.Source) (language.Plan, error) {
	code, err := source.Clean(src.Code)
	if err != nil {
		return language.Plan{}, err
	}
	l, err := language.Lay(src, source.Dedent(code), "main.py", ".py", ".pyw")
	if err != nil {
		return language.Plan{}, err
	}
	// -u: output is streamed as it is printed, not when a buffer is full.
	return l.Interpret(src, []string{src.Program("python3", "python"), "-u"}), nil
}

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

//go:embed kernel/driver.py
var driver []byte

//go:embed kernel/tools.py
var tools []byte

//go:embed kernel/shell.py
var shell []byte

var kernel = language.Kernel{Plan: planKernel, Interrupt: language.InterruptSignal}

func planKernel(src language.KernelSource) (language.Plan, error) {
	main := src.File("driver.py", driver)
	argv := []string{src.Program("python3", "python"), "-u", main.Path}
	if src.Plain {
		argv = append(argv, "plain")
	}
	return language.Plan{
		Files: []language.File{main, src.File("tools.py", tools), src.File("shell.py", shell)},
		Steps: []language.Step{{Argv: argv}},
	}, nil
}

// missing has the packages that are imported by another name than they are installed by.
var missing = language.Missing{
	Messages: [][2]string{
		{"No module named '", "'"},
		{"Missing optional dependency '", "'"}, // pandas
		{"No module named ", ""},               // python -m
	},
	Libraries: map[string]string{
		"Bio": "biopython", "Crypto": "pycryptodome", "IPython": "ipython", "OpenSSL": "pyopenssl", "PIL": "pillow",
		"attr": "attrs", "bs4": "beautifulsoup4", "cairo": "pycairo", "cv2": "opencv-python-headless", "dateutil": "python-dateutil",
		"distutils": "setuptools", "docx": "python-docx", "dotenv": "python-dotenv", "faiss": "faiss-cpu", "fitz": "pymupdf",
		"git": "gitpython", "google": "", "google.cloud.bigquery": "google-cloud-bigquery", "google.cloud.storage": "google-cloud-storage",
		"google.genai": "google-genai", "google.protobuf": "protobuf", "igraph": "python-igraph", "jwt": "pyjwt", "kafka": "kafka-python",
		"magic": "python-magic", "mpl_toolkits": "matplotlib", "mysql": "mysql-connector-python", "MySQLdb": "mysqlclient", "nacl": "pynacl",
		"pkg_resources": "setuptools", "pptx": "python-pptx", "psycopg2": "psycopg2-binary", "pylab": "matplotlib",
		"serial": "pyserial", "skimage": "scikit-image", "sklearn": "scikit-learn", "slugify": "python-slugify", "telegram": "python-telegram-bot",
		"umap": "umap-learn", "websocket": "websocket-client", "yaml": "pyyaml", "zmq": "pyzmq",
		// Parts of Python that an installation may lack or no longer has.
		"ConfigParser": "", "Queue": "", "StringIO": "", "Tkinter": "", "cPickle": "", "imp": "", "tkinter": "", "turtle": "", "urllib2": "",
	},
	Library: func(module string) string {
		name, _, _ := strings.Cut(module, ".")
		if strings.HasPrefix(name, "_") {
			return "" // an extension module of Python's own
		}
		return name
	},
}
