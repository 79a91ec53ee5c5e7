package backendtest

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/llmsandbox/llmsandbox"
)

func (s *suite) acceptance70ManyKernels(t *testing.T) {
	sb := s.shared(t) // which has no network
	var all sync.WaitGroup
	for _, name := range []string{"a", "b", "c"} {
		k := openKernel(t, sb, "", plainPython)
		all.Go(func() {
			// Cells that are asked for at once run one after the other.
			var cells sync.WaitGroup
			for range 10 {
				cells.Go(func() {
					if _, err := k.Run(context.Background(), "n = globals().get('n', 0) + 1", nil); err != nil {
						t.Error(err)
					}
				})
			}
			cells.Wait()
			if c, err := k.Run(context.Background(), "'"+name+"' + str(n)", nil); err != nil || c.Value["text/plain"] != "'"+name+"10'" {
				t.Errorf("%+v, %v, want no error, c.Value[\"text/plain\"] = %v", c, err, "'"+name+"10'")
			}
		})
	}
	all.Wait()
	k := openKernel(t, sb, "", plainPython)
	wantValue(t, k, "'n' in globals()", "False")
	wantValue(t, k, "zebra = [1, 2]", "")
	vars, err := k.Variables(testContext(t))
	if err != nil || len(vars) != 1 || vars[0] != (llmsandbox.Variable{Name: "zebra", Type: "list", Value: "[1, 2]"}) {
		t.Errorf("variables: %+v, %v, want no error, len(vars) = 1, vars[0] = %v", vars, err, llmsandbox.Variable{Name: "zebra", Type: "list", Value: "[1, 2]"})
	}
	if c, err := k.Complete(testContext(t), "é; zebra.app", 12); err != nil || len(c.Matches) != 1 || c.Matches[0] != "zebra.append" || c.Start != 3 || c.End != 12 {
		t.Errorf("complete: %+v, %v, want no error, len(c.Matches) = 1, c.Matches[0] = \"zebra.append\", Start = 3, End = 12", c, err)
	}
	if text, err := k.Inspect(testContext(t), "len(", 4); err != nil || !strings.Contains(text, "number of items") {
		t.Errorf("inspect: %q, %v, want no error, text containing \"number of items\"", text, err)
	}
	if err := k.Reset(testContext(t)); err != nil {
		t.Error(err)
	}
	wantValue(t, k, "'zebra' in globals()", "False")
}
