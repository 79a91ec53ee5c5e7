package registries_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/language/registries"
	"github.com/llmsandbox/llmsandbox/internal/language/registries/registrytest"
)

func TestAdd(t *testing.T) {
	var r language.Registries
	for raw, want := range map[string]string{
		"https://u:s3cret@a.test/x": "https://a.test/x", "https://a.test/x#f": "https://a.test/x", " http://b.test:81 ": "http://b.test:81", "https://@c.test": "https://c.test",
	} {
		if got, err := registries.Add(&r, raw); err != nil || got != want {
			t.Errorf("%q: %q, %v, want no error, got = %q", raw, got, err, want)
		}
	}
	if len(r.URLs) != 3 || !reflect.DeepEqual(r.Credentials, []language.Credential{{URL: "https://a.test/x", Header: "Authorization", Value: "Basic dTpzM2NyZXQ="}}) {
		t.Errorf("%+v, want len(r.URLs) = 3, Credentials %v", r, []language.Credential{{URL: "https://a.test/x", Header: "Authorization", Value: "Basic dTpzM2NyZXQ="}})
	}
	for _, raw := range []string{"", "a.test", "file:///x", "https:///x", "https:a", "https://u:s3cret@[::1/x", "ftp://u:s3cret@a.test"} {
		_, err := registries.Add(&r, raw)
		if !errors.Is(err, registries.ErrConfiguration) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%q: %v, want registries.ErrConfiguration, an error without \"s3cret\"", raw, err)
		}
	}
	var err error
	for i := range 100 {
		if _, e := registries.Add(&r, fmt.Sprintf("https://a%d.test", i)); e != nil {
			err = e
		}
	}
	if !errors.Is(err, registries.ErrConfiguration) || len(r.URLs) != 64 {
		t.Errorf("%d, %v, want registries.ErrConfiguration, len(r.URLs) = 64", len(r.URLs), err)
	}
}

func TestTrust(t *testing.T) {
	const system = "/etc/ssl/certs/ca-certificates.crt"
	pem := func(name string) string { return "-----BEGIN CERTIFICATE-----\n" + name }
	for name, c := range map[string]struct {
		machine    registrytest.Machine
		configured string
		want       string
		err        error
	}{
		"none":                {},
		"the system's":        {machine: registrytest.Machine{Texts: map[string]string{system: pem("s")}}, want: pem("s")},
		"the environment's":   {machine: registrytest.Machine{Vars: map[string]string{"SSL_CERT_FILE": "/e"}, Texts: map[string]string{system: pem("s"), "/e": pem("e")}}, want: pem("e")},
		"the tool's":          {machine: registrytest.Machine{Vars: map[string]string{"SSL_CERT_FILE": "/e"}, Texts: map[string]string{"/t": pem("t")}}, configured: "/t", want: pem("t")},
		"one that is missing": {machine: registrytest.Machine{Texts: map[string]string{system: pem("s")}}, configured: "/t", err: registries.ErrConfiguration},
		"no certificates":     {machine: registrytest.Machine{Texts: map[string]string{"/t": "x"}}, configured: "/t", err: registries.ErrConfiguration},
		"too many":            {machine: registrytest.Machine{Texts: map[string]string{"/t": pem(strings.Repeat("x", 9<<20))}}, configured: "/t", err: registries.ErrConfiguration},
	} {
		var r language.Registries
		found, err := registries.Trust(&r, c.machine.Ask(), "", c.configured)
		if !errors.Is(err, c.err) || found != (len(r.Files) == 1) || found != (c.want != "") {
			t.Errorf("%s: %v, %v, want %v, found = %v, found = %v", name, found, err, c.err, len(r.Files) == 1, c.want != "")
			continue
		}
		if found && string(r.Files[0].Data) != c.want {
			t.Errorf("%s: %.40q, want found = false or Data = %v", name, r.Files[0].Data, c.want)
		}
	}
}
