package debian

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/language/registries"
	"github.com/llmsandbox/llmsandbox/internal/language/registries/registrytest"
)

func TestCheck(t *testing.T) {
	good := map[string]string{}
	for _, s := range []string{"libssl-dev", "jq", "g++", "libstdc++-12-dev", "jq=1.6-2.1", "xx=1:2.0~rc1+dfsg-1", "libboost1.74-dev"} {
		good[s] = s
	}
	registrytest.Check(t, check, good, "j", "JQ", "jq-", "jq=", "jq=>1", "jq>=1", "jq/stable", "jq:amd64", "lib*", "^jq", "jq=1*", "jq==1", "+jq", "jq_", "jq=a")
}

func FuzzCheck(f *testing.F) { registrytest.Fuzz(f, check, "libssl-dev", "g++", "jq=1:1.6-2.1") }

// askSources is how apt is asked for its sources.
const askSources = "apt-get update --print-uris -o Debug::NoLocking=true -o Dir::State::lists=/nonexistent"

func machine() registrytest.Machine {
	find := "find /etc/apt -maxdepth 2 "
	return registrytest.Machine{
		Programs: map[string]string{
			askSources: "'http://a.test/debian/dists/x/InRelease' a 0 \n'http://a.test/debian/dists/x-updates/InRelease' a 0 \n'http://a.test/debian/dists/x/main/binary-amd64/Packages.xz' b 0 \n'https://b.test/x/InRelease' c 0 \n",
			find + "-type f ( -path /etc/apt/sources.list -o -path /etc/apt/sources.list.d/*.list -o -path /etc/apt/sources.list.d/*.sources )": "/etc/apt/sources.list\n/etc/apt/sources.list.d/b.sources\n",
			find + "( -path /etc/apt/trusted.gpg -o -path /etc/apt/trusted.gpg.d/*.gpg -o -path /etc/apt/trusted.gpg.d/*.asc )":                 "/etc/apt/trusted.gpg.d/a.gpg\n",
			"dpkg-query --show --showformat " + installed: "Package: a\nStatus: install ok installed\nVersion: 1\nMulti-Arch: \nProvides: \n\n",
		},
		Texts: map[string]string{
			"/etc/apt/sources.list": "deb http://a.test/debian x main\n", "/etc/apt/sources.list.d/b.sources": "URIs: https://b.test/x\nSigned-By: /etc/apt/keyrings/b.asc\n",
			"/etc/apt/trusted.gpg.d/a.gpg": "A", "/etc/apt/keyrings/b.asc": "B", "/etc/ssl/certs/ca-certificates.crt": "-----BEGIN CERTIFICATE-----\n",
		},
	}
}

func TestRegistries(t *testing.T) {
	r, err := findRegistries(machine().Ask())
	if err != nil || !slices.Equal(r.URLs, []string{"http://a.test/debian/", "https://b.test/x"}) {
		t.Fatalf("%+v, %v, want no error, URLs [\"http://a.test/debian/\" \"https://b.test/x\"]", r, err)
	}
	files := map[string]string{}
	for _, f := range r.Files {
		files[f.Path] = string(f.Data)
	}
	for path, want := range map[string]string{
		sourcesDir + "/main.list": "deb http://a.test/debian x main\n", sourcesDir + "/b.sources": "URIs: https://b.test/x\nSigned-By: " + keysDir + "/b.asc\n",
		keysDir + "/a.gpg": "A", keysDir + "/b.asc": "B", statusFile: "Package: a\nStatus: install ok installed\nVersion: 1\n\n",
	} {
		if files[path] != want {
			t.Errorf("%s: %q, want %q", path, files[path], want)
		}
	}
	if !strings.HasSuffix(files[configFile], "CAInfo \""+registries.CA+"\";\n") {
		t.Errorf("files[configFile] = %v, want files[configFile] ending in %q", files[configFile], "CAInfo \""+registries.CA+"\";\n")
	}
	for name, c := range map[string]struct {
		change func(registrytest.Machine)
		err    error
	}{
		"no apt":     {func(m registrytest.Machine) { clear(m.Programs) }, fs.ErrNotExist},
		"no sources": {func(m registrytest.Machine) { m.Programs[askSources] = "" }, registries.ErrConfiguration},
		"a disc":     {func(m registrytest.Machine) { m.Programs[askSources] = "'cdrom:[x]/dists/y/InRelease' a 0" }, registries.ErrConfiguration},
		"a password": {func(m registrytest.Machine) {
			m.Programs[askSources] = "'https://u:p@a.test/dists/x/InRelease' a 0"
		}, registries.ErrConfiguration},
		"no key": {func(m registrytest.Machine) { delete(m.Texts, "/etc/apt/keyrings/b.asc") }, fs.ErrNotExist},
	} {
		m := machine()
		c.change(m)
		if _, err := findRegistries(m.Ask()); !errors.Is(err, c.err) {
			t.Errorf("%s: %v, want %v", name, err, c.err)
		}
	}
}

func TestUse(t *testing.T) {
	env := use([]string{"/a", "/b"}, func(name string) string { return map[string]string{"PATH": "/bin"}[name] })
	if env[0] != "PATH=/a/usr/bin:/b/usr/bin:/a/usr/sbin:/b/usr/sbin:/bin" || env[1] != "CPATH=/a/usr/include:/b/usr/include:/a/arch-include:/b/arch-include" {
		t.Errorf("%q, want env[0] = \"PATH=/a/usr/bin:/b/usr/bin:/a/usr/sbin:/b/usr/sbin:/bin\", env[1] = %q", env, "CPATH=/a/usr/include:/b/usr/include:/a/arch-include:/b/arch-include")
	}
}

// The packages are made here; what is unpacked of them is looked at in the directory.
func TestInstallLocal(t *testing.T) {
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		if os.Getenv("LLMSANDBOX_REQUIRE") != "" {
			t.Fatal("dpkg-deb is not on this machine")
		}
		t.Skip("dpkg-deb is not on this machine")
	}
	work := t.TempDir()
	local, directory := filepath.Join(work, "local"), filepath.Join(work, "dest")
	tree := filepath.Join(work, "tree")
	write := func(name, text string) {
		path := filepath.Join(tree, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	link := func(target, name string) {
		if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(tree, name)), 0o755), os.Symlink(target, filepath.Join(tree, name))); err != nil {
			t.Fatal(err)
		}
	}
	write("DEBIAN/control", "Package: libx-dev\nVersion: 1.0\nArchitecture: all\nMaintainer: M <m@m.test>\nDescription: d\n")
	write("usr/include/x.h", "#define X 1\n")
	write("usr/lib/x86_64-linux-gnu/pkgconfig/x.pc", "prefix=/usr\nlibdir=${prefix}/lib\nName: x\nDescription: x\nVersion: 1\nCflags: -I${prefix}/include/deep\n")
	write("usr/lib/x86_64-linux-gnu/libonly.a", "")
	write("lib/x86_64-linux-gnu/libx.so.1", "")
	link("/lib/x86_64-linux-gnu/libx.so.1", "usr/lib/x86_64-linux-gnu/libx.so")
	link("../../../bin/sh", "usr/lib/x86_64-linux-gnu/there")
	for _, dir := range []string{local, directory} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("dpkg-deb", "--root-owner-group", "--build", tree, filepath.Join(local, "x.deb")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	script := filepath.Join(work, "libraries.sh")
	if err := os.WriteFile(script, installer, 0o644); err != nil {
		t.Fatal(err)
	}
	run := func(library string) (string, error) {
		out, err := exec.Command("sh", script, directory, filepath.Join(work, "scratch"), local, library).CombinedOutput()
		return string(out), err
	}
	if out, err := run("nope"); err == nil || !strings.Contains(out, "there is no package nope in the folder") {
		t.Errorf("%q, %v, want an error, out containing \"there is no package nope in the folder\"", out, err)
	}
	if out, err := run("libx-dev=1.0"); err != nil || out != "" {
		t.Fatalf("%q, %v, want no error, out empty", out, err)
	}
	for name, want := range map[string]string{"arch-lib": "usr/lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu/libx.so": directory + "/lib/x86_64-linux-gnu/libx.so.1",
		"usr/lib/x86_64-linux-gnu/there": "/bin/sh", "lib": "usr/lib"} {
		if got, err := os.Readlink(filepath.Join(directory, name)); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", name, got, err, want)
		}
	}
	options, err := os.ReadFile(filepath.Join(directory, LinkFile))
	if err != nil || !strings.HasSuffix(string(options), "-Wl,--as-needed\n-lx\n-lonly\n") {
		t.Errorf("%q, %v, want no error, options ending in \"-Wl,--as-needed\\n-lx\\n-lonly\\n\"", options, err)
	}
	pc, err := os.ReadFile(filepath.Join(directory, "arch-lib/pkgconfig/x.pc"))
	if err != nil || !strings.HasPrefix(string(pc), "prefix="+directory+"/usr\n") {
		t.Errorf("%q, %v, want no error, pc beginning with %q", pc, err, "prefix="+directory+"/usr\n")
	}
}

func TestInstall(t *testing.T) {
	plan, err := install(language.InstallSource{Libraries: []string{"jq"}, Dir: "/d", TempDir: "/tmp"})
	if err != nil || strings.Join(plan.Steps[0].Argv, " ") != "sh /tmp/.install.sh /d "+scratch+" - jq" || plan.Steps[0].Env[0] != "APT_CONFIG="+configFile {
		t.Errorf("%+v, %v, want no error, strings.Join(plan.Steps[0].Argv, \" \") = %v, plan.Steps[0].Env[0] = %q", plan, err, "sh /tmp/.install.sh /d "+scratch+" - jq", "APT_CONFIG="+configFile)
	}
}

// Only names of packages come to apt, which takes others for patterns and instructions.
func TestNamesForApt(t *testing.T) {
	work := t.TempDir()
	bin := filepath.Join(work, "bin")
	for name, script := range map[string]string{
		"apt-get":   "echo apt-get \"$@\"",
		"apt-cache": "printf '%s\\n' g++ jq libssl-dev | grep -F -e \"$3\"",
		"g++":       "case $1 in -print-file-name=libstdc++.so) echo /usr/lib/libstdc++.so ;; *) echo \"${1#*=}\" ;; esac",
	} {
		if err := os.MkdirAll(bin, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	script := filepath.Join(work, "libraries.sh")
	if err := os.WriteFile(script, installer, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		libraries []string
		installed string // empty: apt-get installs nothing
		failure   string
	}{
		{libraries: []string{"g++", "jq=1.6-2.1"}, installed: "install g++ jq=1.6-2.1"},
		{libraries: []string{"libstdc++"}},
		{libraries: []string{"libstdc++", "libssl-dev"}, installed: "install libssl-dev"},
		{libraries: []string{"libother++"}, failure: "there is no package libother++"},
		{libraries: []string{"libssl"}, failure: "there is no package libssl"},
		{libraries: []string{"g"}, failure: "there is no package g"},
	} {
		cmd := exec.Command("sh", append([]string{script, filepath.Join(work, "lib"), filepath.Join(work, "scratch"), "-"}, c.libraries...)...)
		cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		_, installed, _ := strings.Cut(string(out), "--no-remove ")
		installed, _, _ = strings.Cut(installed, "\n")
		if installed != c.installed || (err == nil) != (c.failure == "") || !strings.Contains(string(out), c.failure) {
			t.Errorf("%v: %v, installed %q, want %q, failure %q\n%s", c.libraries, err, installed, c.installed, c.failure, out)
		}
	}
}
