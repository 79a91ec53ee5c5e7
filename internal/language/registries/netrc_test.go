package registries_test

import (
	"errors"
	"io/fs"
	"reflect"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/language/registries"
	"github.com/llmsandbox/llmsandbox/internal/language/registries/registrytest"
)

func TestNetrc(t *testing.T) {
	own := []language.Credential{{URL: "https://a.test/x", Header: "Authorization", Value: "Basic dTpw"}}
	for text, want := range map[string][]language.Credential{
		"machine a.test login u password p": own, "machine b.test login u password p\nmachine a.test\n  login u\n  password p\n": own,
		"machine b.test login u password p": nil, "default login u password p": nil, "macdef x\nmachine a.test login u password p": nil, "machine a.test login u password": nil, "": nil,
	} {
		r := language.Registries{URLs: []string{"https://a.test/x"}}
		err := registries.Netrc(&r, registrytest.Machine{Home: "/h", Texts: map[string]string{"/h/.netrc": text}}.Ask())
		if err != nil || !reflect.DeepEqual(r.Credentials, want) {
			t.Errorf("%q: %+v, %v, want no error, Credentials %+v", text, r.Credentials, err, want)
		}
	}
	var r language.Registries
	ask := registrytest.Machine{Vars: map[string]string{"NETRC": "/n"}}.Ask()
	if err := registries.Netrc(&r, ask); err != nil {
		t.Errorf("no file: %v", err)
	}
	ask.File = func(string) ([]byte, error) { return nil, fs.ErrPermission }
	if err := registries.Netrc(&r, ask); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("a file that cannot be read: %v, want fs.ErrPermission", err)
	}
}
