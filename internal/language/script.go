package language

import "github.com/llmsandbox/llmsandbox/internal/language/source"

// Script plans a language whose interpreter takes a file: argv, file, arguments.
func Script(src Source, argv []string, main string, exts ...string) (Plan, error) {
	code, err := source.Clean(src.Code)
	if err != nil {
		return Plan{}, err
	}
	l, err := Lay(src, code, main, exts...)
	if err != nil {
		return Plan{}, err
	}
	return l.Interpret(src, argv), nil
}

// Interpret is the plan that runs argv on the main file.
func (l Layout) Interpret(src Source, argv []string) Plan {
	argv = append(append(argv[:len(argv):len(argv)], l.Main), src.Args...)
	return Plan{Files: l.Files, Steps: []Step{{Argv: argv}}, Cleanup: l.Cleanup}
}
