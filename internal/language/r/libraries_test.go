package r

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
	for _, s := range []string{"data.table", "jsonlite@1.8.8", "ggplot2", "R6", "MASS@7.3-60", "zoo@1.8-12"} {
		good[s] = s
	}
	registrytest.Check(t, check, good, "a", "1a", "a_b", "a.", "x-y", "a@", "ab@latest", "ab@1", "ab@>=1.0", "ab==1.0", "ab@1.0@2.0", "tidyverse/dplyr", "ab@1.0.tar.gz", "ab:1.0")
}

func FuzzCheck(f *testing.F) { registrytest.Fuzz(f, check, "data.table", "jsonlite@1.8.8") }

func TestRegistries(t *testing.T) {
	const ask, pem = "Rscript -e " + configured, "-----BEGIN CERTIFICATE-----\n"
	registrytest.Registries(t, findRegistries, map[string]registrytest.Case{
		"repositories": {
			Machine: registrytest.Machine{Programs: map[string]string{ask: "https://u:p@a.test/cran\nhttps://b.test"}, Vars: map[string]string{"CURL_CA_BUNDLE": "/ca"}, Texts: map[string]string{"/ca": pem}},
			Want: language.Registries{URLs: []string{"https://a.test/cran", "https://b.test"},
				Env:         []string{"SANDBOX_R_REPOSITORIES=https://a.test/cran https://b.test", "CURL_CA_BUNDLE=" + registries.CA},
				Files:       []language.File{{Path: registries.CA, Data: []byte(pem), Mode: 0o644}},
				Credentials: []language.Credential{{URL: "https://a.test/cran", Header: "Authorization", Value: "Basic dTpw"}}},
		},
		"no R":    {Err: fs.ErrNotExist},
		"none":    {Machine: registrytest.Machine{Programs: map[string]string{ask: ""}}, Err: registries.ErrConfiguration},
		"no URLs": {Machine: registrytest.Machine{Programs: map[string]string{ask: "@CRAN@"}}, Err: registries.ErrConfiguration},
	})
}

func TestUse(t *testing.T) {
	if got := use([]string{"/a", "/b"}, func(string) string { return "/own" }); !slices.Equal(got, []string{"R_LIBS=/a/library:/b/library:/own"}) {
		t.Errorf("%q, want [\"R_LIBS=/a/library:/b/library:/own\"]", got)
	}
}
