package layers

import (
	"reflect"
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/language"
	"github.com/llmsandbox/llmsandbox/internal/language/registries"
)

// Files about registries are among a sandbox's own, and what names them follows.
func TestSettleIn(t *testing.T) {
	at := func(dir string) language.Plan {
		return language.Plan{
			Files: []language.File{{Path: dir + "/npmrc", Data: []byte("cafile=" + dir + "/ca.pem\n"), Mode: 0o644}, {Path: "/d/a", Data: []byte("/tmp")}},
			Steps: []language.Step{{Argv: []string{"npm", "--config=" + dir + "/npmrc"}, Env: []string{"CA=" + dir + "/ca.pem"}, Dir: "/d"}},
		}
	}
	plan := at(registries.Dir)
	if got := settleIn("/tmp", plan); !reflect.DeepEqual(got, plan) {
		t.Errorf("got %+v, want it as it was", got)
	}
	if got, want := settleIn("/run/a/.tmp", plan), at("/run/a/.tmp/.llmsandbox-registries"); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if want := at(registries.Dir); !reflect.DeepEqual(plan, want) {
		t.Errorf("the plan has become %+v, want %+v", plan, want)
	}
}
