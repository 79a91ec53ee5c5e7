package javascript

import (
	"io/fs"
	"slices"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/language/registries"
	"github.com/llmsandbox/llmsandbox/internal/language/registries/registrytest"
)

func TestCheck(t *testing.T) {
	good := map[string]string{}
	for _, s := range []string{"lodash", "@types/node", "react@18.2.0", "@types/node@20", "chalk@^5", "x@~1.2", "x@>=1.0.0", "x@latest", "x@1.x", "x@*",
		"x@1.0.0-rc.1+build", "JSONStream", "socket.io", "is-number@next", "x@=v1.0.0"} {
		good[s] = s
	}
	registrytest.Check(t, check, good, "user/repo", "@types", "@/node", "@types/", "x@", "x@@", "x@npm:y", "x@file:y", "x.tgz", "x@y.tgz", "x@1.tar.gz", "x.tar@1",
		"@a/b/c", "x@^", "x@1 || 2", "x@1||2", "@-a/b", "x@-g", "_x", "x@github:a/b", "x@>=1<2", "./x", "x@./y")
}

func FuzzCheck(f *testing.F) {
	registrytest.Fuzz(f, check, "lodash", "@types/node@20", "x@^1.2.3-rc.1")
}

func TestRegistries(t *testing.T) {
	const ask = "npm config ls -l --json"
	registrytest.Registries(t, findRegistries, map[string]registrytest.Case{
		"the registry": {
			Machine: registrytest.Machine{Programs: map[string]string{ask: `{"registry":"https://r.test/","cafile":null,"strict-ssl":true,"userconfig":"/u","globalconfig":"/g"}`}},
			Want: language.Registries{URLs: []string{"https://r.test/"}, Env: []string{"npm_config_userconfig=" + npmrc},
				Files: []language.File{{Path: npmrc, Data: []byte("registry=https://r.test/\n"), Mode: 0o644}}},
		},
		"scopes, tokens and certificates": {
			Machine: registrytest.Machine{
				Programs: map[string]string{ask: `{"registry":"https://u:p@r.test/npm/","@foo:registry":"https://f.test/x","@bar:registry":"https://b.test","cafile":"/ca","strict-ssl":false,"userconfig":"/u"}`},
				Texts: map[string]string{"/ca": "-----BEGIN CERTIFICATE-----\n",
					"/u": "; c\n//f.test/:_authToken=${TOKEN}\n//b.test/:username=me\n//b.test/:_password=\"cHc=\"\n//other.test/:_authToken=no\n//f.test/xy/:_authToken=no\nfund=false\n"},
				Vars: map[string]string{"TOKEN": "t0"},
			},
			Want: language.Registries{URLs: []string{"https://b.test", "https://f.test/x", "https://r.test/npm/"},
				Env: []string{"npm_config_userconfig=" + npmrc, "NODE_EXTRA_CA_CERTS=" + registries.CA},
				Files: []language.File{{Path: npmrc, Data: []byte("@bar:registry=https://b.test\n@foo:registry=https://f.test/x\nregistry=https://r.test/npm/\nstrict-ssl=false\n"), Mode: 0o644},
					{Path: registries.CA, Data: []byte("-----BEGIN CERTIFICATE-----\n"), Mode: 0o644}},
				Credentials: []language.Credential{{URL: "https://r.test/npm/", Header: "Authorization", Value: "Basic dTpw"},
					{URL: "https://f.test/x", Header: "Authorization", Value: "Bearer t0"}, {URL: "https://b.test", Header: "Authorization", Value: "Basic bWU6cHc="}}},
		},
		"no npm":            {Err: fs.ErrNotExist},
		"no JSON":           {Machine: registrytest.Machine{Programs: map[string]string{ask: "x"}}, Err: registries.ErrConfiguration},
		"no URL":            {Machine: registrytest.Machine{Programs: map[string]string{ask: `{"registry":"x"}`}}, Err: registries.ErrConfiguration},
		"no base64":         {Machine: registrytest.Machine{Programs: map[string]string{ask: `{"registry":"https://r.test","userconfig":"/u"}`}, Texts: map[string]string{"/u": "//r.test/:_password=$\n"}}, Err: registries.ErrConfiguration},
		"a scope with more": {Machine: registrytest.Machine{Programs: map[string]string{ask: `{"registry":"https://r.test","@a\nx=y:registry":"https://r.test"}`}}, Err: registries.ErrConfiguration},
	})
}

func TestUse(t *testing.T) {
	got := use([]string{"/a", "/b"}, func(name string) string { return map[string]string{"PATH": "/bin", "NODE_OPTIONS": "-r x"}[name] })
	want := []string{"PATH=/a/node_modules/.bin:/b/node_modules/.bin:/bin", "NODE_PATH=/a/node_modules:/b/node_modules", "NODE_OPTIONS=-r x --require=/a/resolve.cjs"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
