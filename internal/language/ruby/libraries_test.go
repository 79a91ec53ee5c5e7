package ruby

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
	for _, s := range []string{"nokogiri:1.15.0", "rake", "rack:~>3.0", "x:>=1.0.0.pre1", "activesupport", "aws-sdk-s3", "x:!=2", "x:1.0-java", "a", "RedCloth"} {
		good[s] = s
	}
	registrytest.Check(t, check, good, "x:", ":1", "x:latest", "x:1:2", "x.gem", "a/b", "x:>", "x:=>1", "x@1", "x:1,2", "_x", "x:~>1.0, >=2", "x:-1")
}

func FuzzCheck(f *testing.F) { registrytest.Fuzz(f, check, "rake", "nokogiri:1.15.0", "rack:~>3.0") }

func TestRegistries(t *testing.T) {
	const ask, pem = "gem sources --list", "-----BEGIN CERTIFICATE-----\n"
	registrytest.Registries(t, findRegistries, map[string]registrytest.Case{
		"sources": {
			Machine: registrytest.Machine{Programs: map[string]string{ask: "*** CURRENT SOURCES ***\n\nhttps://a.test/\nhttps://u:p@b.test/x/\n"}, Home: "/h",
				Texts: map[string]string{"/h/.gemrc": "---\n:ssl_ca_cert: \"/ca\"\n", "/ca": pem}},
			Want: language.Registries{URLs: []string{"https://a.test/", "https://b.test/x/", "https://index.a.test/"}, Env: []string{"SSL_CERT_FILE=" + registries.CA},
				Files: []language.File{{Path: gemrc, Data: []byte("---\n:sources:\n- \"https://a.test/\"\n- \"https://b.test/x/\"\n"), Mode: 0o644},
					{Path: registries.CA, Data: []byte(pem), Mode: 0o644}},
				Credentials: []language.Credential{{URL: "https://b.test/x/", Header: "Authorization", Value: "Basic dTpw"}}},
		},
		"no gem":    {Err: fs.ErrNotExist},
		"no source": {Machine: registrytest.Machine{Programs: map[string]string{ask: "*** NO CONFIGURED SOURCES ***\n"}}, Err: registries.ErrConfiguration},
		"a folder":  {Machine: registrytest.Machine{Programs: map[string]string{ask: "/x\n"}}, Err: registries.ErrConfiguration},
	})
}

func TestUse(t *testing.T) {
	for now, want := range map[string]string{"": "/a:/b:", "/own": "/a:/b:/own"} {
		got := use([]string{"/a", "/b"}, func(name string) string { return map[string]string{"GEM_PATH": now}[name] })
		if !slices.Equal(got, []string{"PATH=/a/bin:/b/bin", "GEM_PATH=" + want}) {
			t.Errorf("%q, want %q", got, []string{"PATH=/a/bin:/b/bin", "GEM_PATH=" + want})
		}
	}
}
