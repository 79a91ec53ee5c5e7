package declared

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/language/source"
)

// The placeholders of words.
const (
	inMain    = "main"    // the main file
	inDir     = "dir"     // the directory that the main file and those of its project are in
	inWorkdir = "workdir" // the working directory
	inTemp    = "temp"    // a directory for temporary files
	inOutput  = "output"  // a path that no other run has, for what is compiled
	inArgs    = "args"    // the program's arguments, each a word
	inSources = "sources" // the files of the project with the language's endings, each a word
)

// lists are the placeholders that stand for any number of words.
var lists = []string{inArgs, inSources, inLibraries}

// A word of a command is texts and placeholders in turn, a text first.
type word []string

// parseWord parses a word that may have the placeholders known. {{ and }} are braces.
func parseWord(key, text string, known ...string) (word, error) {
	w := word{""}
	for rest := text; rest != ""; {
		n := strings.IndexAny(rest, "{}")
		if n < 0 {
			w[len(w)-1] += rest
			break
		}
		w[len(w)-1] += rest[:n]
		if strings.HasPrefix(rest[n:], "{{") || strings.HasPrefix(rest[n:], "}}") {
			w[len(w)-1] += rest[n : n+1]
			rest = rest[n+2:]
			continue
		}
		name, behind, ok := strings.Cut(rest[n+1:], "}")
		if rest[n] == '}' || !ok {
			return nil, wrong(key, "%.80q has a brace of no placeholder: write {{ or }} for the character", text)
		}
		if !slices.Contains(known, name) {
			return nil, wrong(key, "there is no placeholder {%.40s} here: use %s", name, "{"+strings.Join(known, "}, {")+"}")
		}
		w = append(w, name, "")
		rest = behind
	}
	for i := 1; i < len(w); i += 2 {
		if slices.Contains(lists, w[i]) && (len(w) != 3 || w[0] != "" || w[2] != "") {
			return nil, wrong(key, "{%s} is any number of words: let it be a word of its own", w[i])
		}
	}
	return w, nil
}

// parseWords parses a command's words.
func parseWords(key string, words []string, known ...string) ([]word, error) {
	if err := checkWords(key, words); err != nil {
		return nil, err
	}
	if len(words) == 0 || words[0] == "" {
		return nil, wrong(key, "it is empty: a command is a list of words, a program first")
	}
	var parsed []word
	for _, text := range words {
		w, err := parseWord(key, text, known...)
		if err != nil {
			return nil, err
		}
		parsed = append(parsed, w)
	}
	return parsed, nil
}

// has reports whether a placeholder is in a word.
func (w word) has(placeholder string) bool {
	for i := 1; i < len(w); i += 2 {
		if w[i] == placeholder {
			return true
		}
	}
	return false
}

// fill is the word with the values of its placeholders.
func (w word) fill(values map[string]string) string {
	var text strings.Builder
	for i, part := range w {
		if i%2 == 1 {
			part = values[part]
		}
		text.WriteString(part)
	}
	return text.String()
}

// fillAll are the words with the values of their placeholders. A list is as many words as it has.
func fillAll(words []word, values map[string]string, of map[string][]string) []string {
	var argv []string
	for _, w := range words {
		if len(w) == 3 && slices.Contains(lists, w[1]) {
			argv = append(argv, of[w[1]]...)
			continue
		}
		argv = append(argv, w.fill(values))
	}
	return argv
}

// A command is one step.
type command struct {
	program []string // alternatives; nil: the first word is what a step before has made
	words   []word
}

// commands are how a language is run.
type commands struct {
	title     string
	main      string
	ext       []string
	directory bool
	steps     []command // all but the last compile
	env       [][2]word // names, as texts, and values
	takesArgs bool
	outputs   []word // what is left of {output}
}

func (f *file) commands() (*commands, error) {
	c := &commands{title: f.Title, main: f.Main, ext: f.Extensions, directory: f.Directory}
	if !slices.Contains(c.ext, path.Ext(f.Main)) {
		c.ext = append([]string{path.Ext(f.Main)}, c.ext...)
	}
	if len(f.Compile) > maxList {
		return nil, wrong("compile", "there are more than %d commands", maxList)
	}
	for _, words := range f.Compile {
		if err := c.add(f, "compile", words, inMain, inDir, inWorkdir, inTemp, inOutput, inSources); err != nil {
			return nil, err
		}
	}
	if err := c.add(f, "run", f.Run, inMain, inDir, inWorkdir, inTemp, inOutput, inSources, inArgs); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(f.Env)) {
		if !validVariable(name) {
			return nil, wrong("env", "%.80q is no variable's name", name)
		}
		if err := checkWords("env."+name, []string{f.Env[name]}); err != nil {
			return nil, err
		}
		value, err := parseWord("env."+name, f.Env[name], inMain, inDir, inWorkdir, inTemp, inOutput)
		if err != nil {
			return nil, err
		}
		c.env = append(c.env, [2]word{{name}, value})
	}
	return c, nil
}

// add adds a step.
func (c *commands) add(f *file, key string, words []string, known ...string) error {
	parsed, err := parseWords(key, words, known...)
	if err != nil {
		return err
	}
	step := command{words: parsed, program: f.alternatives(words[0])}
	made := len(parsed[0]) > 1 && parsed[0][0] == "" && parsed[0][1] == inOutput
	switch {
	case step.program == nil && !made:
		return wrong(key, "%.80q is not among programs, and does not begin with {output}", words[0])
	case made && len(c.steps) == 0:
		return wrong(key, "{output} is made by nothing: there is no compile command before")
	}
	for _, w := range parsed {
		c.takesArgs = c.takesArgs || w.has(inArgs)
		if w.has(inOutput) {
			c.outputs = append(c.outputs, w[slices.Index(w, inOutput)-1:])
		}
	}
	c.steps = append(c.steps, step)
	return nil
}

// plan turns a source into files and steps.
func (c *commands) plan(src language.Source) (language.Plan, error) {
	if len(src.Args) > 0 && !c.takesArgs {
		return language.Plan{}, fmt.Errorf("arguments: %w: programs in %s take none", language.ErrInvalidSource, c.title)
	}
	code, err := source.Clean(src.Code)
	if err != nil {
		return language.Plan{}, err
	}
	lay := language.Lay
	if c.directory {
		lay = language.LayProject
	}
	l, err := lay(src, code, c.main, c.ext...)
	if err != nil {
		return language.Plan{}, err
	}
	values := map[string]string{
		inMain: l.Main, inDir: path.Dir(l.Main), inWorkdir: src.Workdir, inTemp: src.TempDir, inOutput: src.Private(src.TempDir),
	}
	of := map[string][]string{inArgs: src.Args, inSources: l.WithEnding(c.ext...)}
	plan := language.Plan{Files: l.Files, Cleanup: l.Cleanup}
	var env []string
	for _, v := range c.env {
		env = append(env, v[0].fill(nil)+"="+v[1].fill(values))
	}
	for i, s := range c.steps {
		argv := fillAll(s.words, values, of)
		if s.program != nil {
			argv[0] = src.Program(s.program...)
		}
		plan.Steps = append(plan.Steps, language.Step{Argv: argv, Env: env, Compile: i < len(c.steps)-1})
	}
	for _, w := range c.outputs {
		// What lies below goes with it, and what lies elsewhere is not the run's own.
		if rest := w[2:].fill(values); !strings.Contains(rest, "/") && !slices.Contains(plan.Cleanup, values[inOutput]+rest) {
			plan.Cleanup = append(plan.Cleanup, values[inOutput]+rest)
		}
	}
	if len(c.outputs) > 0 && !slices.Contains(plan.Cleanup, values[inOutput]) {
		plan.Cleanup = append(plan.Cleanup, values[inOutput])
	}
	return plan, nil
}

func validVariable(name string) bool {
	return name != "" && len(name) <= 128 && strings.Trim(name, wordBytes) == "" && name[0] > '9'
}
