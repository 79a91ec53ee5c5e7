package llmsandbox

import "testing"

func TestRunTags(t *testing.T) {
	for _, want := range []runTag{{"1a", false}, {"zz9", true}} {
		if got, ok := parseRunTag(want.String()); !ok || got != want {
			t.Errorf("%q is %+v, %v; want %+v", want, got, ok, want)
		}
	}
	for _, text := range []string{"", "run", "run a", "run ../a kills", "run  kills", "run a kills more", "kernel a kills", "ahead-a"} {
		if got, ok := parseRunTag(text); ok {
			t.Errorf("%q is %+v, want no run's", text, got)
		}
	}
}
