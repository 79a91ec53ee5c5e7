package llmsandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/supervisor"
)

func TestSupervisorErrorsKeepTheirMeaning(t *testing.T) {
	for _, k := range kinds {
		err := asTold(&supervisor.Error{Text: "text", Kind: kindOf(fmt.Errorf("x: %w", k.err))})
		if !errors.Is(err, k.err) || err.Error() != "text" {
			t.Errorf("%s: got %v, want an error with the text alone that is %v", k.name, err, k.err)
		}
	}
}

// An option that Options gets has to go to the supervisor, or to be named here.
func TestOrderHasAllOptions(t *testing.T) {
	stay := []string{"Backend", "Supervisor", "Policy", "Artifacts", "Progress", "Logger"}
	for f := range reflect.TypeFor[Options]().Fields() {
		if goes := f.Tag.Get("json") != "-"; goes == slices.Contains(stay, f.Name) {
			t.Errorf("the option %s goes to a supervisor: %v, want %v", f.Name, goes, !goes)
		}
	}
	text, err := json.Marshal(order{Options: Options{Progress: func(backend.Progress) {}, Network: Network{Hook: func(NetworkAttempt) {}, Allow: []string{"a"}}, Limits: Limits{Memory: Unlimited}, Secrets: []Secret{{Name: "n", Value: "v"}}}})
	if err != nil {
		t.Fatal(err)
	}
	var got order
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if o := got.Options; o.Limits.Memory != Unlimited || !slices.Equal(o.Network.Allow, []string{"a"}) || len(o.Secrets) != 1 || o.Secrets[0].Value != "v" {
		t.Errorf("%s: got %+v, want the limit, the rule and the secret", text, got)
	}
}

// A fakeBackend has a name only.
type fakeBackend struct{ backend.Backend }

func (fakeBackend) Name() string { return "fake" }

// TestTakeOverRefused: who cannot own a sandbox is told why, before anything is done about it.
func TestTakeOverRefused(t *testing.T) {
	hook := Network{Hook: func(NetworkAttempt) {}}
	for name, c := range map[string]struct {
		backend backend.Backend
		over    *TakeOver
		want    error
	}{
		"a backend whose sandboxes end with their owners": {fakeBackend{}, &TakeOver{}, ErrUnsupported},
		"a supervisor without a command":                  {fakeAdopter{}, &TakeOver{Supervisor: &Supervisor{}}, ErrInvalid},
		"a supervisor that is to call a function of ours": {fakeAdopter{}, &TakeOver{Supervisor: &Supervisor{Command: []string{"true"}}, Network: hook}, ErrInvalid},
	} {
		if sb, err := Attach(t.Context(), "sb-1", &AttachOptions{Backend: c.backend, TakeOver: c.over}); sb != nil || !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// A fakeAdopter could adopt a sandbox.
type fakeAdopter struct{ fakeBackend }

func (fakeAdopter) Adopt(context.Context, string) (backend.Machine, error) { panic("not to be called") }
