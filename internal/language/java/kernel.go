package java

import (
	_ "embed"

	"github.com/llmsandbox/llmsandbox/internal/language"
)

//go:embed kernel.java
var kernelDriver []byte

// kernel evaluates cells by JShell's API in the driver's own JVM, which compiles the
// driver when it starts.
var kernel = &language.Kernel{
	Plan: func(src language.KernelSource) (language.Plan, error) {
		driver := src.File("kernel.java", kernelDriver)
		argv := []string{src.Program("java"), "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData"}
		as := language.Source{TempDir: src.TempDir, MemoryLimit: src.MemoryLimit, CPULimit: src.CPULimit, Proxy: src.Proxy, TrustStore: src.TrustStore}
		argv = append(argv, place(as)...)
		argv = append(argv, network(as)...)
		argv = append(argv, "--add-opens=java.base/java.io=ALL-UNNAMED", "-Dfile.encoding=UTF-8", "-Dstdout.encoding=UTF-8", "-Dstderr.encoding=UTF-8",
			"-Dllmsandbox.classpath="+src.Workdir+classPath(src.Libraries), driver.Path)
		return language.Plan{
			Files: []language.File{driver},
			Steps: []language.Step{{Argv: argv}},
		}, nil
	},
	Interrupt: language.InterruptRequest,
	Repeat:    true,
	Base64:    true,
}
