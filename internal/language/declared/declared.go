// Package declared makes languages out of files: what needs no Go code of its own is a declaration in TOML.
// The built-in ones are in the directory builtin; users have their own.
package declared

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/BurntSushi/toml"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

// MaxFile bounds a declaration, in bytes.
const MaxFile = 64 << 10

// ErrInvalid: a declaration is not valid; the text says where.
var ErrInvalid = errors.New("language declaration is not valid")

// An Error is what is wrong with a declaration. It is an ErrInvalid.
type Error struct {
	File   string
	Line   int    // 0: of the file as a whole
	Key    string // may be empty
	Reason string
}

func (e *Error) Error() string {
	at := e.File
	if e.Line > 0 {
		at += fmt.Sprintf(":%d", e.Line)
	}
	if e.Key != "" {
		at += ": " + e.Key
	}
	return fmt.Sprintf("%s: %v: %s", at, ErrInvalid, e.Reason)
}

// Is makes errors.Is(err, ErrInvalid) true.
func (e *Error) Is(target error) bool { return target == ErrInvalid }

// A file is a declaration as it is written.
type file struct {
	Name       string            `toml:"name"`
	Title      string            `toml:"title"`
	Aliases    []string          `toml:"aliases"`
	Extensions []string          `toml:"extensions"`
	Shebangs   []string          `toml:"shebangs"`
	Programs   [][]string        `toml:"programs"`
	Install    string            `toml:"install"`
	Image      string            `toml:"image"`
	Main       string            `toml:"main"`
	Directory  bool              `toml:"directory"`
	Compile    [][]string        `toml:"compile"`
	Run        []string          `toml:"run"`
	Env        map[string]string `toml:"env"`
	Libraries  *libraries        `toml:"libraries"`
	Details    details           `toml:"details"`
	Policy     *lexical          `toml:"policy"`
}

type details struct {
	UseCases []string  `toml:"use_cases"`
	Version  []string  `toml:"version"`
	Untested bool      `toml:"untested"`
	Examples []example `toml:"examples"`
}

type example struct {
	Title       string `toml:"title"`
	Description string `toml:"description"`
	Code        string `toml:"code"`
}

// Read makes the language that the file of that path declares.
func Read(path string) (*language.Language, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the language's declaration: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read the language's declaration: %w", err)
	}
	return Parse(path, text)
}

// Parse makes the language that text declares. file is its name for errors, which are of type *Error.
func Parse(name string, text []byte) (*language.Language, error) {
	if len(text) > MaxFile {
		return nil, &Error{File: name, Reason: fmt.Sprintf("it is larger than %d KiB, the limit for declarations", MaxFile>>10)}
	}
	var f file
	about, err := toml.Decode(string(text), &f)
	if syntax, ok := errors.AsType[toml.ParseError](err); ok {
		return nil, &Error{name, syntax.Position.Line, syntax.LastKey, syntax.Message}
	}
	if err != nil {
		return nil, wrongType(name, err)
	}
	if unknown := about.Undecoded(); len(unknown) > 0 {
		key := unknown[0].String()
		return nil, Invalid(name, text, key, "there is no such key")
	}
	l, err := f.language()
	if wrong, ok := errors.AsType[*problem](err); ok {
		return nil, Invalid(name, text, wrong.key, wrong.reason)
	}
	if err != nil {
		return nil, &Error{File: name, Reason: err.Error()}
	}
	l.Declaration = slices.Clone(text)
	return l, nil
}

// wrongType is the error for a value of another type than its key has, whose line and key the decoder tells in text.
func wrongType(name string, err error) error {
	e := &Error{File: name, Reason: strings.TrimPrefix(err.Error(), "toml: ")}
	var line int
	var key string
	if n, _ := fmt.Sscanf(e.Reason, "line %d (last key %q):", &line, &key); n == 2 {
		_, e.Reason, _ = strings.Cut(e.Reason, "): ")
		e.Line, e.Key = line, key
	}
	return e
}

// Invalid is the error for a key of a declaration.
func Invalid(name string, text []byte, key, reason string) error {
	return &Error{name, lineOf(text, key), key, reason}
}

// A problem is what is wrong with the value of a key.
type problem struct{ key, reason string }

func (p *problem) Error() string { return p.key + ": " + p.reason }

func wrong(key, format string, args ...any) error {
	return &problem{key, fmt.Sprintf(format, args...)}
}

// lineOf is the line where a dotted key is written, or else that of the innermost table that it is in; 0 if neither is found.
func lineOf(text []byte, key string) int {
	table, around, end := "", 0, "" // end is that of a string of several lines
	for i, line := range strings.Split(string(text), "\n") {
		if end != "" {
			if strings.Contains(line, end) {
				end = ""
			}
			continue
		}
		if header, ok := tableHeader(line); ok {
			table = header + "."
			switch {
			case header == key:
				return i + 1
			case around == 0 && strings.HasPrefix(key, table):
				around = i + 1
			}
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if !ok {
			continue
		}
		switch full := table + strings.Trim(name, " \t\"'"); {
		case full == key:
			return i + 1
		case strings.HasPrefix(key, full+"."): // it is in an inline table
			around = i + 1
		}
		for _, quotes := range []string{`"""`, "'''"} {
			if strings.Count(value, quotes) == 1 {
				end = quotes
			}
		}
	}
	return around
}

// tableHeader is the name of the table that a line begins. A line of an array begins with a bracket, too.
func tableHeader(line string) (name string, ok bool) {
	name, ok = strings.CutPrefix(strings.TrimSpace(line), "[")
	name, _, closed := strings.Cut(strings.TrimPrefix(name, "["), "]")
	name = strings.TrimSpace(name)
	return name, ok && closed && name != "" && strings.Trim(name, wordBytes+"-.") == ""
}

// language checks a declaration and makes the language.
func (f *file) language() (*language.Language, error) {
	if err := f.checkNames(); err != nil {
		return nil, err
	}
	if err := f.checkPrograms(); err != nil {
		return nil, err
	}
	c, err := f.commands()
	if err != nil {
		return nil, err
	}
	d, err := f.details()
	if err != nil {
		return nil, err
	}
	l := &language.Language{
		Name: f.Name, Title: f.Title, Aliases: f.Aliases, Extensions: f.Extensions, Shebangs: f.Shebangs,
		Programs: f.Programs, Install: f.Install, Image: f.Image, Plan: c.plan, Details: d,
	}
	if f.Libraries != nil {
		if l.Libraries, err = f.Libraries.installer(f); err != nil {
			return nil, err
		}
		l.Details.PackageManager = f.Libraries.Manager
	}
	if f.Policy != nil {
		r, err := f.Policy.rules(f.Title)
		if err != nil {
			return nil, err
		}
		l.Scan, l.ModuleSeparator = r.scan, r.moduleSeparator
	}
	return l, nil
}

// Bounds on what a declaration may have.
const (
	maxList = 64
	maxText = 4096
)

func (f *file) checkNames() error {
	switch {
	case !validName(f.Name) || strings.Trim(f.Name, lowerBytes) != "": // directories of libraries have it as a part
		return wrong("name", "%.80q is no name: use 1 to 32 of a-z and 0-9, a letter first", f.Name)
	case strings.TrimSpace(f.Title) == "" || len(f.Title) > 64 || !plainText(f.Title):
		return wrong("title", "%.80q is no title: write the language's name as people do, in at most 64 bytes", f.Title)
	case f.Install == "" || len(f.Install) > maxText || !plainText(f.Install):
		return wrong("install", "say in one line how to install the programs, in at most %d bytes", maxText)
	case len(f.Image) > 512 || !plainText(f.Image) || strings.ContainsAny(f.Image, " \t") || strings.HasPrefix(f.Image, "-"):
		return wrong("image", "%.80q is no image: use a reference such as perl:5", f.Image)
	case len(f.Aliases) > maxList || len(f.Extensions) > maxList || len(f.Shebangs) > maxList:
		return wrong("aliases", "there are more than %d aliases, extensions or shebangs", maxList)
	}
	for i, a := range f.Aliases {
		if !validName(a) || a == f.Name || slices.Contains(f.Aliases[:i], a) {
			return wrong("aliases", "%.80q is no alias: use 1 to 32 of a-z, 0-9, '+', '#', '_' and '-', a letter first, each once", a)
		}
	}
	for i, e := range f.Extensions {
		if len(e) < 2 || len(e) > 17 || e[0] != '.' || strings.Trim(e[1:], wordBytes+"+#-") != "" || slices.Contains(f.Extensions[:i], e) {
			return wrong("extensions", "%.80q is no ending of a file: write it like .pl, each once", e)
		}
	}
	for _, s := range f.Shebangs {
		if !validProgram(s) {
			return wrong("shebangs", "%.80q is no program's name", s)
		}
	}
	if f.Main == "" || path.Ext(f.Main) == "" || len(f.Main) > 64 || strings.Trim(f.Main, wordBytes+".+-") != "" || strings.ContainsAny(f.Main[:1], ".-_") {
		return wrong("main", "%.80q is no name for the main file: write it like main.pl", f.Main)
	}
	return nil
}

func (f *file) checkPrograms() error {
	if len(f.Programs) == 0 || len(f.Programs) > maxList {
		return wrong("programs", "list 1 to %d programs, each as a list of alternatives: [[\"lua5.4\", \"lua\"]]", maxList)
	}
	for _, names := range f.Programs {
		if len(names) == 0 || len(names) > maxList {
			return wrong("programs", "a program has 1 to %d alternatives", maxList)
		}
		for _, n := range names {
			if !validProgram(n) {
				return wrong("programs", "%.80q is no program's name: it is looked for in PATH", n)
			}
		}
	}
	return nil
}

func (f *file) details() (language.Details, error) {
	d := language.Details{UseCases: f.Details.UseCases, Untested: f.Details.Untested}
	if len(f.Details.UseCases) > maxList || len(f.Details.Examples) > maxList {
		return d, wrong("details", "there are more than %d use cases or examples", maxList)
	}
	for _, u := range f.Details.UseCases {
		if len(u) > maxText || !plainText(u) {
			return d, wrong("details.use_cases", "use lines of at most %d bytes", maxText)
		}
	}
	if d.Version = f.Details.Version; len(d.Version) == 0 {
		return d, wrong("details.version", "give the command that prints the version: [\"perl\", \"-v\"]")
	}
	if err := checkWords("details.version", d.Version); err != nil {
		return d, err
	}
	if f.alternatives(d.Version[0]) == nil {
		return d, wrong("details.version", "%q is not among programs", d.Version[0])
	}
	for _, e := range f.Details.Examples {
		if e.Title == "" || e.Code == "" || !plainText(e.Title) || !plainText(e.Description) {
			return d, wrong("details.examples", "an example has a title and code, and a description of one line")
		}
		d.Examples = append(d.Examples, language.Example{Title: e.Title, Description: e.Description, Code: e.Code})
	}
	return d, nil
}

// alternatives are the names of the program that has name among them; nil: there is none.
func (f *file) alternatives(name string) []string {
	for _, names := range f.Programs {
		if slices.Contains(names, name) {
			return names
		}
	}
	return nil
}

const (
	lowerBytes = "abcdefghijklmnopqrstuvwxyz0123456789"
	wordBytes  = lowerBytes + "ABCDEFGHIJKLMNOPQRSTUVWXYZ_"
)

func validName(name string) bool {
	return name != "" && len(name) <= 32 && 'a' <= name[0] && name[0] <= 'z' && strings.Trim(name, lowerBytes+"+#_-") == ""
}

func validProgram(name string) bool {
	return name != "" && len(name) <= 64 && strings.Trim(name, wordBytes+".+-") == "" && name[0] != '-' && name[0] != '.'
}

// plainText reports whether text is one line without control characters.
func plainText(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\uFFFD' })
}

func checkWords(key string, words []string) error {
	if len(words) > maxList {
		return wrong(key, "it has more than %d words", maxList)
	}
	for _, w := range words {
		if len(w) > maxText || strings.Contains(w, "\x00") {
			return wrong(key, "a word is longer than %d bytes, or has a NUL", maxText)
		}
	}
	return nil
}

//go:embed builtin/*.toml
var files embed.FS

// Builtin are the languages that the files in the directory builtin declare, by the files' names. They are read
// when they are first asked for: most programs are of other languages.
var Builtin = sync.OnceValue(func() []*language.Language {
	entries, err := files.ReadDir("builtin")
	if err != nil {
		panic(err) // what is embedded is there
	}
	var list []*language.Language
	for _, e := range entries {
		name := "builtin/" + e.Name()
		text, err := files.ReadFile(name)
		if err != nil {
			panic(err)
		}
		l, err := Parse(name, text)
		if err != nil {
			panic(fmt.Sprintf("declared: %v", err)) // a test reads all of them
		}
		list = append(list, l)
	}
	return list
})
