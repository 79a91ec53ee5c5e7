package java

import (
	"archive/zip"
	"bytes"
	"errors"
	"io/fs"
	"reflect"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/language/registries"
	"github.com/llmsandbox/llmsandbox/internal/language/registries/registrytest"
	"github.com/llmsandbox/llmsandbox/internal/trust"
)

func TestCheck(t *testing.T) {
	good := map[string]string{"g:a:jar:1.0": "g:a:1.0"}
	for _, s := range []string{"org.apache.commons:commons-lang3", "com.google.code.gson:gson:2.10.1", "g:a:jar:linux-x86_64:1.0", "io.netty:netty-all:4.1.100.Final"} {
		good[s] = s
	}
	registrytest.Check(t, check, good, "commons-lang3", "a:", ":a", "a:b:", "a:b:c:d:e:f", "a:b:[1,2)", "a:b:pom:1.0", "a:b:LATEST", "a:b:RELEASE", "a/b:c", "a:b@jar",
		"a:b:<x>", "a:b:1.0:sources", "a:b:1.*")
}

func FuzzCheck(f *testing.F) { registrytest.Fuzz(f, check, "g:a:1.0", "g:a:jar:c:1.0", "g:a") }

const (
	ask   = "mvn --batch-mode --version"
	found = "find /m/lib -maxdepth 1 -name maven-model-builder*.jar -o -name maven-impl-*.jar"
	pem   = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
)

// jar is an archive of Maven's with the project that all others inherit from.
func jar(t *testing.T) string {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	f, err := w.Create("org/apache/maven/model/pom-4.0.0.xml")
	if err == nil {
		_, err = f.Write([]byte("<project><repositories><repository><id>central</id><url>https://c.test/maven2</url></repository></repositories></project>"))
	}
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestRegistries(t *testing.T) {
	version := "\x1b[1mApache Maven 3.8.7\x1b[m\nMaven home: /m\nJava version: 17\n"
	for name, c := range map[string]struct {
		machine registrytest.Machine
		urls    []string
		creds   []language.Credential
		inside  []string // in the sandbox's settings
		err     error
	}{
		"Maven's own": {machine: registrytest.Machine{Programs: map[string]string{ask: version, found: "/m/lib/other.jar /m/lib/b.jar"}, Home: "/h",
			Texts: map[string]string{"/m/lib/b.jar": jar(t), "/m/lib/other.jar": emptyZip(t), "/etc/ssl/certs/ca-certificates.crt": pem,
				"/m/conf/settings.xml": "<settings><mirrors><mirror><id>b</id><mirrorOf>external:http:*</mirrorOf><url>http://0.0.0.0/</url><blocked>true</blocked></mirror></mirrors></settings>"}},
			urls: []string{"https://c.test/maven2"}, inside: []string{"<blocked>true</blocked>", "<host>PROXY_HOST</host>"}},
		"a mirror with a password, and an active repository": {machine: registrytest.Machine{Programs: map[string]string{ask: version}, Home: "/h",
			Texts: map[string]string{"/h/.m2/settings.xml": `<settings xmlns="x"><mirrors><mirror><id>m</id><mirrorOf>*,!own</mirrorOf><url>https://m.test/all</url></mirror></mirrors>
				<servers><server><id>m</id><username>u</username><password>s3cret</password></server></servers>
				<profiles><profile><id>p</id><repositories><repository><id>own</id><url>https://own.test</url></repository></repositories></profile>
				<profile><id>off</id><repositories><repository><id>no</id><url>https://no.test</url></repository></repositories></profile></profiles>
				<activeProfiles><activeProfile>p</activeProfile></activeProfiles></settings>`}},
			urls:   []string{"https://m.test/all", "https://own.test"},
			creds:  []language.Credential{{URL: "https://m.test/all", Header: "Authorization", Value: "Basic dTpzM2NyZXQ="}},
			inside: []string{"<mirrorOf>*,!own</mirrorOf>", "<url>https://own.test</url>", "<pluginRepositories>"}},
		"an encrypted password": {machine: registrytest.Machine{Programs: map[string]string{ask: version}, Home: "/h",
			Texts: map[string]string{"/h/.m2/settings.xml": `<settings><mirrors><mirror><id>m</id><mirrorOf>*</mirrorOf><url>https://m.test</url></mirror></mirrors>
				<servers><server><id>m</id><username>u</username><password>{s3cret=}</password></server></servers></settings>`}}, err: registries.ErrConfiguration},
		"no Maven":      {err: fs.ErrNotExist},
		"no home":       {machine: registrytest.Machine{Programs: map[string]string{ask: "x"}}, err: registries.ErrConfiguration},
		"no settings":   {machine: registrytest.Machine{Programs: map[string]string{ask: version}, Texts: map[string]string{"/m/conf/settings.xml": "<"}}, err: registries.ErrConfiguration},
		"no repository": {machine: registrytest.Machine{Programs: map[string]string{ask: version, found: ""}}, err: registries.ErrConfiguration},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := findRegistries(c.machine.Ask())
			if !errors.Is(err, c.err) || err != nil && strings.Contains(err.Error(), "s3cret") {
				t.Fatal(err)
			}
			if err != nil {
				return
			}
			if !reflect.DeepEqual(got.URLs, c.urls) || !reflect.DeepEqual(got.Credentials, c.creds) {
				t.Errorf("%q, %+v, want URLs %q, Credentials %+v", got.URLs, got.Credentials, c.urls, c.creds)
			}
			text := string(got.Files[0].Data)
			for _, want := range c.inside {
				if !strings.Contains(text, want) {
					t.Errorf("no %s in\n%s", want, text)
				}
			}
			if strings.Contains(text, "s3cret") || strings.Contains(text, "no.test") {
				t.Errorf("text = %v, want text without \"s3cret\", text without \"no.test\"", text)
			}
			if len(got.Files) > 1 && (got.Files[1].Path != trust.JavaStore(registries.Dir) || len(trustFlags(got)) == 0) {
				t.Errorf("%s, %q, want %s and flags for it", got.Files[1].Path, trustFlags(got), trust.JavaStore(registries.Dir))
			}
		})
	}
}

func emptyZip(t *testing.T) string {
	var b bytes.Buffer
	if err := zip.NewWriter(&b).Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestInstall(t *testing.T) {
	src := language.InstallSource{Libraries: []string{"g:a", "g:b:jar:c:1.0"}, Dir: "/d", TempDir: "/tmp"}
	plan, err := install(src)
	if err != nil {
		t.Fatal(err)
	}
	pom := string(plan.Files[1].Data)
	for _, want := range []string{"<artifactId>a</artifactId><version>RELEASE</version>", "<version>1.0</version><classifier>c</classifier>"} {
		if !strings.Contains(pom, want) {
			t.Errorf("no %s in %s", want, pom)
		}
	}
	src.Local = "/jars"
	if plan, err = install(src); err != nil || strings.Join(plan.Steps[0].Argv[2:], " ") != "/d /jars a-*.jar b-1.0-c.jar" {
		t.Errorf("%+v, %v, want no error, strings.Join(plan.Steps[0].Argv[2:], \" \") = \"/d /jars a-*.jar b-1.0-c.jar\"", plan, err)
	}
}

func TestPlanWithLibraries(t *testing.T) {
	src := language.Source{Code: []byte("class A { public static void main(String[] a) {} }"), RunID: "1", Workdir: "/w", TempDir: "/t", Program: func(a ...string) string { return a[0] },
		Libraries: []string{"/a", "/b"}}
	p, err := plan(src)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range p.Steps {
		for _, want := range []string{":/w:/a/jars/*:/b/jars/* ", "-Djava.io.tmpdir=/t "} {
			if !strings.Contains(strings.Join(step.Argv, " "), want) {
				t.Errorf("%q, want it to contain %q", step.Argv, want)
			}
		}
	}
}
