package llmsandbox

import (
	"testing"

	"github.com/llmsandbox/llmsandbox/internal/environ"
)

func TestAddMissing(t *testing.T) {
	got := environ.AddMissing([]string{"A=1", "HTTP_PROXY=mine"}, []string{"HTTP_PROXY=theirs", "B=2"})
	if len(got) != 3 || got[1] != "HTTP_PROXY=mine" || got[2] != "B=2" {
		t.Errorf("%q, want len(got) = 3, got[1] = \"HTTP_PROXY=mine\", got[2] = \"B=2\"", got)
	}
	if got := without(got, []string{"B=2", "A=0"}); len(got) != 2 {
		t.Errorf("%q, want len(got) = 2", got)
	}
}
