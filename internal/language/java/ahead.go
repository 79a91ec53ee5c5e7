package java

import (
	_ "embed"
	"path"
	"strings"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

//go:embed Ahead.java
var aheadProgram []byte

// ahead has the compiler wait for its code.
var ahead = &language.Ahead{
	Capture: func(src language.CaptureSource) language.Capture {
		return language.Capture{Files: []language.File{{Path: aheadFile(src.Support), Data: aheadProgram, Mode: 0o644}}}
	},
	Settable: func(name string) bool { return language.SetLate(name, "JAVA", "_JAVA", "JDK", "CLASSPATH") },
	Compiler: func(plan language.Plan, support string) (argv, args []string) {
		argv = []string{plan.Steps[1].Argv[0]}
		for _, arg := range plan.Steps[0].Argv[1:] {
			if option, ok := strings.CutPrefix(arg, "-J"); ok {
				argv = append(argv, option)
			} else {
				args = append(args, arg)
			}
		}
		return append(argv, "--add-opens=java.base/java.io=ALL-UNNAMED", aheadFile(support)), args
	},
}

func aheadFile(support string) string { return path.Join(support, "Ahead.java") }
