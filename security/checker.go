package security

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/language/all"
)

// MaxCode is how many bytes of code are looked at. Larger code is refused by every policy
// that refuses anything.
const MaxCode = 4 << 20

// A Checker holds a compiled policy. It is immutable and safe for concurrent use.
type Checker struct {
	policy Policy
	rules  map[string]*rules // by language
}

// Policy returns a copy of what the checker was compiled from.
func (c *Checker) Policy() Policy { return clone(c.policy) }

// Check looks at a program without running it, in time that grows with its length. What
// cannot be looked at is a finding. Its error is ctx's, or wraps
// [github.com/llmsandbox/llmsandbox.ErrUnknownLanguage].
func (c *Checker) Check(ctx context.Context, lang string, code []byte) (Report, error) {
	l, err := all.Get(lang)
	if err != nil {
		return Report{}, err
	}
	return c.look(ctx, l, code)
}

func (c *Checker) look(ctx context.Context, l *language.Language, code []byte) (Report, error) {
	if len(code) > MaxCode {
		return c.unread(l, fmt.Sprintf("the code is larger than %d MiB, and is not looked at", MaxCode>>20)), nil
	}
	if c.rules[l.Name] == nil {
		return c.unread(l, "the policy was compiled before the language "+l.Title+" was loaded"), nil
	}
	if l.Scan == nil {
		return c.unread(l, "code in "+l.Title+" cannot be looked at"), nil
	}
	report, err := c.read(ctx, l, code)
	switch {
	case err == nil:
		return report, nil
	case errors.Is(err, language.ErrTooComplex), errors.Is(err, errScanner):
		return c.unread(l, err.Error()), nil
	}
	return Report{}, err
}

// read scans code and compares it with the policy. Code is hostile, and a scanner that it
// breaks must not take a server with it: such code is as good as unread.
func (c *Checker) read(ctx context.Context, l *language.Language, code []byte) (report Report, err error) {
	defer func() {
		if recover() != nil {
			err = errScanner
		}
	}()
	err = language.Metered(ctx, len(code), func(m *language.Meter) {
		report = c.judge(m, l, code, l.Scan(m, code))
	})
	return report, err
}

var errScanner = errors.New("the code breaks what reads it; please report it")

// unread is the report on code that nothing is known about.
func (c *Checker) unread(l *language.Language, reason string) Report {
	return c.report([]Finding{{Rule: ruleUnreadable, Severity: High, Language: l.Name, Line: 1, Column: 1, EndLine: 1, EndColumn: 1, Reason: reason}})
}

// judge compares what a program says with the policy.
func (c *Checker) judge(m *language.Meter, l *language.Language, code []byte, facts language.Facts) Report {
	found := &findings{lang: l.Name, code: code}
	r := c.rules[l.Name]
	for _, i := range facts.Imports {
		m.Take(len(i.Module))
		if m := r.module(i.Module, l.ModuleSeparator); m != nil {
			found.add(i.Span, "module:"+m.Name, m.Severity, because(importOf(i.Module, m.Name), m.Description))
		}
	}
	for _, u := range facts.Uses {
		m.Take(len(u.Name))
		if n := r.name(u.Name); n != nil {
			found.add(u.Span, "name:"+n.Name, n.Severity, because(useOf(u.Name, n.Name), n.Description))
		}
	}
	for _, x := range facts.Computed {
		found.add(x.Span, "computed:"+string(x.Kind), c.policy.Computed, computed(x.Kind))
	}
	if len(r.patterns) > 0 {
		texts := newTexts(m, code, facts)
		for _, p := range r.patterns {
			for _, span := range texts.match(p) {
				found.add(span, "pattern:"+p.Pattern.Pattern, p.Severity, because("the code matches a pattern", p.Description))
			}
		}
	}
	if facts.Problem != "" {
		found.add(language.Span{}, ruleUnreadable, c.policy.Computed, "the code could not be read to its end: "+facts.Problem)
	}
	return c.report(found.sorted())
}

const ruleUnreadable = "unreadable"

func because(what, description string) string {
	if description == "" {
		return what
	}
	return what + ": " + description
}

func importOf(module, rule string) string {
	if module == rule {
		return "the module " + rule + " is restricted"
	}
	return fmt.Sprintf("the module %.80s is restricted with %s", module, rule)
}

func useOf(name, rule string) string {
	if name == rule {
		return rule + " is restricted"
	}
	return fmt.Sprintf("%.80s is restricted with %s", name, rule)
}

func computed(kind language.ComputedKind) string {
	switch kind {
	case language.ComputedImport:
		return "which module is brought in is computed, and cannot be known without running the code"
	case language.ComputedName:
		return "which name is used is computed, and cannot be known without running the code"
	}
	return "code that is made at run time is executed, and cannot be looked at"
}

// A Program is all that a run executes.
type Program struct {
	// Language is the name of what Code is written in.
	Language string
	// Name is the main file's name where there is one, Code its content.
	Name string
	Code []byte
	// Files are the others, by their relative paths. Those whose ending or first line
	// tells no language are data.
	Files map[string][]byte
	// Libraries are installed for it.
	Libraries []string
}

// CheckProgram looks at a program's libraries, its main file, and its other files in the
// order of their names. Its errors are those of [Checker.Check].
func (c *Checker) CheckProgram(ctx context.Context, p Program) (Report, error) {
	report, err := c.CheckLibraries(p.Language, p.Libraries)
	if err != nil {
		return report, err
	}
	add := func(lang, file string, code []byte) error {
		of, err := c.Check(ctx, lang, code)
		if err != nil {
			return err
		}
		for _, f := range of.Findings {
			f.File = file
			report.Findings = append(report.Findings, f)
		}
		report.Blocked = report.Blocked || of.Blocked
		report.Omitted += of.Omitted
		return nil
	}
	if len(p.Code) > 0 {
		if err := add(p.Language, p.Name, p.Code); err != nil {
			return report, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Files)) {
		lang, ok := all.Guess(name, p.Files[name])
		if !ok {
			continue
		}
		if err := add(lang.Name, name, p.Files[name]); err != nil {
			return report, err
		}
	}
	return report, nil
}

// CheckLibraries looks at libraries, as they are listed for
// [github.com/llmsandbox/llmsandbox.Sandbox.Install]. Entries that the language's grammar
// refuses are no findings: installing them fails. Its error wraps
// [github.com/llmsandbox/llmsandbox.ErrUnknownLanguage].
func (c *Checker) CheckLibraries(language string, libraries []string) (Report, error) {
	lang, err := all.Get(language)
	if err != nil {
		return Report{}, err
	}
	rules := c.rules[lang.Name]
	if rules == nil { // the language was loaded later: code is not looked at, either
		rules = newRules(lang)
	}
	var found []Finding
	for _, library := range libraries {
		name := libraryOf(lang, library)
		if name == "" {
			continue
		}
		if m := rules.library(name); m != nil {
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
