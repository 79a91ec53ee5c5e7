package llmsandbox

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

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
