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
	for kind, value := range kinds {
		err := asTold(&supervisor.Error{Text: "text", Kind: kindOf(fmt.Errorf("x: %w", value))})
		if !errors.Is(err, value) || err.Error() != "text" {
			t.Errorf("%s: got %v, want an error with the text alone that is %v", kind, err, value)
		}
	}
}

// An option that Options gets has to go to the supervisor, or to be named here.
func TestOrderHasAllOptions(t *testing.T) {
	stay := []string{"Backend", "Supervisor", "Policy", "Artifacts", "Progress", "Logger", "Network"} // Network is Mode and Allow
	for f := range reflect.TypeFor[Options]().Fields() {
		if _, ok := reflect.TypeFor[order]().FieldByName(f.Name); !ok && !slices.Contains(stay, f.Name) {
			t.Errorf("the option %s goes to no supervisor", f.Name)
		}
	}
}
