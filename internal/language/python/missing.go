package python

import (
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

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
