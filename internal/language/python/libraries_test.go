package python

import (
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/language/registries"
	"github.com/llmsandbox/llmsandbox/internal/language/registries/registrytest"
)

func TestCheck(t *testing.T) {
	registrytest.Check(t, check, map[string]string{
		"six": "six", "Django>=4.2": "django>=4.2", "pkg[extra1,extra2]": "pkg[extra1,extra2]", "requests>=2.0,<3.0": "requests<3.0,>=2.0",
		"Foo_.Bar": "foo-bar", "foo[B,a,b]==1.*": "foo[a,b]==1.*", "a": "a", "torch==2.1.0+cpu": "torch==2.1.0+cpu", "x~=1.4.2": "x~=1.4.2",
		"x!=1.0,!=1.0": "x!=1.0", "x===Odd-1": "x===Odd-1", "x==1!2.0RC1.post1.dev3": "x==1!2.0rc1.post1.dev3", "zope.interface": "zope-interface",
	}, "six==", "six=1", "six>", "six>1,", "six,>1", "six[", "six[]", "six[a", "six[a,]", "six@1.0", "six>=1 ,<2", "six==1.0;python_version<'3'",
		"_six", "six_", "six-", "@types/node", "a/b", "six>=1.*", "six==latest", "six<>1", "six===", "six=>1", "C:\\x", "x==1.0.whl")
}

func FuzzCheck(f *testing.F) {
	registrytest.Fuzz(f, check, "six", "pkg[a,b]>=1.0,<2", "x===1", "Foo_.Bar==1.0+local.1")
}

const pem = "-----BEGIN CERTIFICATE-----\n"

func TestRegistries(t *testing.T) {
	const own = "https://index.test/simple files.test\n"
	list, ask := "python3 -m pip config list", "python3 -c "+configuration
	registrytest.Registries(t, findRegistries, map[string]registrytest.Case{
		"pip's own index": {
			Machine: registrytest.Machine{Programs: map[string]string{ask: own}},
			Want: language.Registries{
				URLs: []string{"https://files.test/", "https://index.test/simple"}, Env: []string{"PIP_INDEX_URL=https://index.test/simple"},
			},
		},
		"mirrors with credentials": {
			Machine: registrytest.Machine{Programs: map[string]string{ask: own + "global.index-url='https://u:p%40w@a.test/simple'\nglobal.extra-index-url='\\nhttps://b.test/x\\nhttps://t@c.test/y'\n" +
				":env:.find-links='/opt/wheels https://d.test/links'\nglobal.trusted-host='b.test'\n"}},
			Want: language.Registries{
				URLs: []string{"https://a.test/simple", "https://b.test/x", "https://c.test/y", "https://d.test/links"},
				Env: []string{"PIP_INDEX_URL=https://a.test/simple", "PIP_EXTRA_INDEX_URL=https://b.test/x https://c.test/y", "PIP_FIND_LINKS=https://d.test/links",
					"PIP_TRUSTED_HOST=b.test"},
				Credentials: []language.Credential{{URL: "https://a.test/simple", Header: "Authorization", Value: "Basic dTpwQHc="},
					{URL: "https://c.test/y", Header: "Authorization", Value: "Basic dDo="}},
			},
		},
		"the environment before files, a command before all": {
			Machine: registrytest.Machine{Programs: map[string]string{ask: own + ":env:.index-url='https://env.test'\ninstall.index-url='https://i.test'\nglobal.index-url='https://g.test'\n" +
				"install.timeout='9'\nglobal.timeout='8'\nglobal.cert='/ca'\n"}, Texts: map[string]string{"/ca": pem}},
			Want: language.Registries{
				URLs: []string{"https://env.test"}, Env: []string{"PIP_INDEX_URL=https://env.test", "PIP_TIMEOUT=9", "PIP_CERT=" + registries.CA},
				Files: []language.File{{Path: registries.CA, Data: []byte(pem), Mode: 0o644}},
			},
		},
		"a user's file after the machine's": {
			Machine: registrytest.Machine{Programs: map[string]string{ask: own + "global.index-url='https://machine.test'\nglobal.index-url='https://user.test'\n"}},
			Want:    language.Registries{URLs: []string{"https://user.test"}, Env: []string{"PIP_INDEX_URL=https://user.test"}},
		},
		"a pip that is made otherwise": {
			Machine: registrytest.Machine{Programs: map[string]string{list: "global.index-url='https://a.test'\n"}},
			Want:    language.Registries{URLs: []string{"https://a.test"}, Env: []string{"PIP_INDEX_URL=https://a.test"}},
		},
		"its own index is not known": {Machine: registrytest.Machine{Programs: map[string]string{list: ""}}, Err: fs.ErrNotExist},
		"no pip":                     {Machine: registrytest.Machine{}, Err: fs.ErrNotExist},
		"no URL":                     {Machine: registrytest.Machine{Programs: map[string]string{ask: own + "global.index-url='ftp://u:secret@a.test'"}}, Err: registries.ErrConfiguration},
		"an unreadable CA":           {Machine: registrytest.Machine{Programs: map[string]string{ask: own + "global.index-url='https://a.test'\nglobal.cert='/ca'"}}, Err: registries.ErrConfiguration},
		"a pip without index":        {Machine: registrytest.Machine{Programs: map[string]string{ask: "\n"}}, Err: registries.ErrConfiguration},
	})
}

func TestInstall(t *testing.T) {
	src := language.InstallSource{
		Libraries: []string{"six", "x>1"}, Dir: "/lib", TempDir: "/tmp", Local: "/wheels", Accelerator: "/uv", Program: func(alt ...string) string { return alt[0] },
		Registries: language.Registries{Env: []string{"PIP_INDEX_URL=https://a.test"}, Files: []language.File{{Path: registries.CA}}},
	}
	plan, err := install(src)
	if err != nil || len(plan.Steps) != 1 || len(plan.Files) != 2 {
		t.Fatalf("%+v, %v, want no error, len(plan.Steps) = 1, len(plan.Files) = 2", plan, err)
	}
	step := plan.Steps[0]
	if argv := strings.Join(step.Argv, " "); !strings.HasSuffix(argv, "/lib /tmp/.install /uv --no-index --find-links /wheels -- six x>1") {
		t.Errorf("argv = %v, want argv ending in %q", argv, "/lib /tmp/.install /uv --no-index --find-links /wheels -- six x>1")
	}
	src.Host = true
	if plan, err = install(src); err != nil || !slices.Contains(plan.Steps[0].Argv, "--ignore-installed") || slices.Contains(step.Argv, "--ignore-installed") {
		t.Errorf("argv = %v of this machine and %q of an image, %v, want only the first with --ignore-installed", plan.Steps, step.Argv, err)
	}
	if !slices.Contains(step.Env, "PIP_INDEX_URL=https://a.test") || !slices.Contains(step.Env, "PIP_CONFIG_FILE=/dev/null") {
		t.Errorf("Env = %v, want Env containing \"PIP_INDEX_URL=https://a.test\", Env containing \"PIP_CONFIG_FILE=/dev/null\"", step.Env)
	}
}

func TestUse(t *testing.T) {
	current := func(name string) string { return map[string]string{"PATH": "/usr/bin"}[name] }
	if got := use([]string{"/a", "/b"}, current); !slices.Equal(got, []string{"PATH=/a/bin:/b/bin:/usr/bin", "PYTHONPATH=/a/site:/b/site"}) {
		t.Errorf("got = %v, want got [\"PATH=/a/bin:/b/bin:/usr/bin\" \"PYTHONPATH=/a/site:/b/site\"]", got)
	}
}
