package java

import (
	_ "embed"
	"fmt"
	"path"
	"regexp"
	"strings"
	"sync"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/language/registries"
)

var libraries = language.Libraries{
	Program:    "java",
	Needs:      [][]string{{"java"}, {"mvn"}},
	Check:      check,
	Install:    install,
	Use:        use,
	Registries: findRegistries,
}

var grammar = sync.OnceValue(func() *regexp.Regexp {
	const word = `[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?`
	return regexp.MustCompile(`^(` + word + `):(` + word + `)(?::(` + word + `))?(?::(` + word + `))?(?::(` + word + `))?$`)
})

// A coordinate is what Maven knows an artifact by.
type coordinate struct{ group, artifact, packaging, classifier, version string }

func parseCoordinate(library string) (c coordinate, ok bool) {
	m := grammar().FindStringSubmatch(library)
	if m == nil {
		return c, false
	}
	c = coordinate{group: m[1], artifact: m[2], packaging: "jar", version: m[3]}
	if m[4] != "" {
		c.packaging, c.version = m[3], m[4]
	}
	if m[5] != "" {
		c.classifier, c.version = m[4], m[5]
	}
	// Versions that are no fixed ones would be another library tomorrow; without any, the
	// newest release of the day is what is asked for.
	return c, c.packaging == "jar" && c.version != "LATEST" && c.version != "RELEASE"
}

func (c coordinate) String() string {
	s := c.group + ":" + c.artifact
	if c.classifier != "" {
		s += ":" + c.packaging + ":" + c.classifier
	}
	if c.version != "" {
		s += ":" + c.version
	}
	return s
}

// check takes group:artifact[:version], and group:artifact:jar[:classifier]:version.
func check(library string) (string, error) {
	if err := registries.Plain(library); err != nil {
		return "", err
	}
	c, ok := parseCoordinate(library)
	if !ok {
		return "", fmt.Errorf("library %q of Maven: %w: write it like org.apache.commons:commons-lang3:3.14.0 or group:artifact:jar:classifier:version",
			library, language.ErrInvalidLibrary)
	}
	return c.String(), nil
}

//go:embed libraries.sh
var installer []byte

//go:embed local.sh
var localInstaller []byte

// goal copies a project's dependencies.
const goal = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"

// install has Maven copy the libraries, and what they depend on, into src.Dir's jars.
func install(src language.InstallSource) (language.Plan, error) {
	project := path.Join(src.TempDir, ".install")
	script := path.Join(project, "libraries.sh")
	if src.Local != "" {
		argv := []string{"sh", script, src.Dir, src.Local}
		for _, library := range src.Libraries {
			c, _ := parseCoordinate(library)
			argv = append(argv, c.pattern())
		}
		return language.Plan{
			Files: []language.File{{Path: script, Data: localInstaller, Mode: 0o644}},
			Steps: []language.Step{{Argv: argv}},
		}, nil
	}
	var pom strings.Builder
	pom.WriteString("<project><modelVersion>4.0.0</modelVersion><groupId>sandbox</groupId><artifactId>libraries</artifactId><version>1</version><dependencies>\n")
	for _, library := range src.Libraries {
		c, _ := parseCoordinate(library) // its grammar leaves nothing that XML gives a meaning
		version := c.version
		if version == "" {
			version = "RELEASE"
		}
		fmt.Fprintf(&pom, "<dependency><groupId>%s</groupId><artifactId>%s</artifactId><version>%s</version>", c.group, c.artifact, version)
		if c.classifier != "" {
			fmt.Fprintf(&pom, "<classifier>%s</classifier>", c.classifier)
		}
		pom.WriteString("</dependency>\n")
	}
	pom.WriteString("</dependencies></project>\n")
	argv := []string{"sh", script, src.Dir, project, settingsFile, goal}
	return language.Plan{
		Files: append([]language.File{
			{Path: script, Data: installer, Mode: 0o644},
			{Path: path.Join(project, "pom.xml"), Data: []byte(pom.String()), Mode: 0o644},
		}, src.Registries.Files...),
		Steps: []language.Step{{Argv: append(argv, trustFlags(src.Registries)...), Env: src.Registries.Env}},
	}, nil
}

// pattern is what a file of the artifact is called.
func (c coordinate) pattern() string {
	name := c.artifact + "-*.jar"
	if c.version != "" {
		name = c.artifact + "-" + c.version
		if c.classifier != "" {
			name += "-" + c.classifier
		}
		name += ".jar"
	}
	return name
}

// use is for java and javac in a shell; runs have a class path of their own.
func use(dirs []string, current func(string) string) []string {
	return []string{registries.Prepend("CLASSPATH", dirs, "jars/*", current)}
}

// classPath is what the libraries add to a class path.
func classPath(dirs []string) string {
	var s strings.Builder
	for _, dir := range dirs {
		s.WriteString(":" + path.Join(dir, "jars/*"))
	}
	return s.String()
}

// libraryName is an artifact of Maven's without a version.
func libraryName(canonical string) string {
	group, rest, _ := strings.Cut(canonical, ":")
	artifact, _, _ := strings.Cut(rest, ":")
	return group + ":" + artifact
}
