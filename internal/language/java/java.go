// Package java describes Java.
package java

import (
	_ "embed"
	"net"
	"path"
	"slices"
	"strconv"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/language/source"
	"github.com/llmsandbox/llmsandbox/internal/proxyenv"
	"github.com/llmsandbox/llmsandbox/internal/trust"
)

// Language is Java.
var Language = language.Language{
	Name: "java", Title: "Java", Aliases: []string{"jdk"},
	Extensions: []string{".java"},
	Programs:   [][]string{{"javac"}, {"java"}},
	Install:    "install it with: apt-get install default-jdk-headless; or use --image eclipse-temurin:21",
	Plan:       plan,
	Details:    details,
	Kernel:     kernel,
	Ahead:      ahead,
	Libraries:  &libraries,
	Scan:       scan, ModuleSeparator: ".", LibraryName: libraryName, Missing: &missing,
	Caches: []language.Cache{{
		Name: "javac", Title: "Java's compiler", Target: archiveDir, Program: "javac", Mounted: true,
		Fill: []language.Step{{Argv: append([]string{"sh", "-c", archiveScript, "sh", archiveDir, "javac"}, compiler...)}},
	}},
}

// archiveDir is where a sandbox has the archive of javac's classes, which were parsed and verified
// when it was made.
const archiveDir = "/tmp/" + archiveBelow

// archiveBelow is that below the directory for temporary files.
const archiveBelow = ".cache/javac"

//go:embed archive.sh
var archiveScript string

// compiler are javac's options. Compilers are short-lived: the second JIT tier and parallel collectors only cost.
var compiler = []string{"-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC", "-J-XX:-UsePerfData", "-encoding", "UTF-8", "-proc:none"}

// archive has javac use its archive. A JVM goes on without one that is not there or of another JVM, and is to
// say nothing of that; an old one does not know these options.
func archive(tempDir string) []string {
	return []string{"-J-XX:+IgnoreUnrecognizedVMOptions", "-J-XX:SharedArchiveFile=" + path.Join(tempDir, archiveBelow, "javac.jsa"), "-J-Xlog:cds*=off"}
}

func plan(src language.Source) (language.Plan, error) {
	code, err := source.Clean(src.Code)
	if err != nil {
		return language.Plan{}, err
	}
	unit, err := parse(code)
	if err != nil {
		return language.Plan{}, err
	}
	src.Name = "" // javac wants the public type's name
	l, err := language.LayProject(src, code, unit.fileName()+".java")
	if err != nil {
		return language.Plan{}, err
	}
	classes := src.Private(src.TempDir)
	compile := slices.Concat([]string{src.Program("javac")}, compiler, archive(src.TempDir))
	for _, flag := range place(src) {
		compile = append(compile, "-J"+flag)
	}
	compile = append(compile, "-cp", classes+":"+src.Workdir+classPath(src.Libraries), "-d", classes)
	compile = append(compile, l.WithEnding(".java")...)
	run := []string{src.Program("java"), "-XX:+UseSerialGC", "-XX:-UsePerfData"}
	run = append(run, place(src)...)
	run = append(run, network(src)...)
	run = append(run, "-cp", classes+":"+l.Dir+":"+src.Workdir+classPath(src.Libraries), unit.mainClass())
	return language.Plan{
		Files:   l.Files,
		Steps:   []language.Step{{Argv: compile, Compile: true}, {Argv: append(run, src.Args...)}},
		Cleanup: append(l.Cleanup, classes),
	}, nil
}

// place tells a JVM where it is. Without /sys it cannot see its cgroup and would go by the size of the machine, and it
// does not read TMPDIR.
func place(src language.Source) []string {
	flags := []string{"-Djava.io.tmpdir=" + src.TempDir}
	if src.MemoryLimit > 0 {
		flags = append(flags, "-XX:MaxRAM="+strconv.FormatInt(src.MemoryLimit, 10), "-XX:MaxRAMPercentage=60")
	}
	if n := language.Parallel(src.CPULimit); n > 0 {
		flags = append(flags, "-XX:ActiveProcessorCount="+strconv.Itoa(n))
	}
	return flags
}

// network sets the proxy for a JVM, which reads no environment variable for
// that without saying so on stderr.
func network(src language.Source) []string {
	host, port, err := net.SplitHostPort(src.Proxy)
	if err != nil {
		return nil // there is none
	}
	flags := proxyenv.JavaFlags(host, port)
	if src.TrustStore != "" {
		flags = append(flags, trust.JavaFlags(src.TrustStore)...)
	}
	return flags
}
