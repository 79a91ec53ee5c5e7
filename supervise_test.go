package llmsandbox

import (
	"context"
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
	stay := []string{"Backend", "Supervisor", "Policy", "Artifacts", "Progress", "Logger", "Network", "Template"} // Network is Mode and Allow; Template, what is in it
	for f := range reflect.TypeFor[Options]().Fields() {
		if _, ok := reflect.TypeFor[order]().FieldByName(f.Name); !ok && !slices.Contains(stay, f.Name) {
			t.Errorf("the option %s goes to no supervisor", f.Name)
		}
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
