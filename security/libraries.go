package security

import (
	"cmp"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/language/all"
)

// CheckLibraries looks at libraries, as they are listed for
// [github.com/llmsandbox/llmsandbox.Sandbox.Install]. Entries that the language's grammar
// refuses are no findings: installing them fails. Its error wraps
// [github.com/llmsandbox/llmsandbox.ErrUnknownLanguage].
func (c *Checker) CheckLibraries(language string, libraries []string) (Report, error) {
	lang, err := all.Get(language)
	if err != nil {
		return Report{}, err
	}
	var found []Finding
	for _, library := range libraries {
		name := libraryOf(lang, library)
		if name == "" {
			continue
		}
		if m := c.rules[lang.Name].library(name); m != nil {
			found = append(found, Finding{
				Rule: "library:" + m.Name, Severity: m.Severity, Language: lang.Name, Code: clipped([]byte(library)),
				Reason: because("the library of the restricted module "+m.Name+" is asked for", m.Description),
			})
		}
	}
	return c.report(found), nil
}

// libraryOf is the name of the library that an entry of a list asks for, in the form in
// which equal names are equal; empty for what is no library.
func libraryOf(lang *language.Language, entry string) string {
	if lang.Libraries == nil {
		return ""
	}
	canonical, err := lang.Libraries.Check(entry)
	if err != nil {
		return ""
	}
	if lang.LibraryName == nil {
		return canonical
	}
	return lang.LibraryName(canonical)
}

// librariesOf are the libraries that a module comes from: the one of its name, and the
// well-known ones that are called otherwise. A name that is no library's may be what
// libraries lie below: a scope or a group.
func librariesOf(lang *language.Language, module string) []string {
	names := []string{module}
	if lang.Name == "python" {
		names = append(names, strings.Fields(otherwise[module])...)
	}
	for i, entry := range names {
		names[i] = cmp.Or(libraryOf(lang, entry), entry)
	}
	return names
}

// otherwise are Python's well-known modules whose libraries have other names.
var otherwise = map[string]string{
	"bs4": "beautifulsoup4", "cv2": "opencv-python opencv-python-headless opencv-contrib-python",
	"Crypto": "pycryptodome pycrypto", "dateutil": "python-dateutil", "dotenv": "python-dotenv",
	"fitz": "pymupdf", "git": "gitpython", "github": "pygithub", "googleapiclient": "google-api-python-client",
	"jwt": "pyjwt", "kafka": "kafka-python", "magic": "python-magic", "MySQLdb": "mysqlclient",
	"nacl": "pynacl", "OpenSSL": "pyopenssl", "PIL": "pillow", "psycopg2": "psycopg2-binary",
	"serial": "pyserial", "skimage": "scikit-image", "sklearn": "scikit-learn",
	"socks": "pysocks", "usb": "pyusb", "win32api": "pywin32", "yaml": "pyyaml", "zmq": "pyzmq",
}
