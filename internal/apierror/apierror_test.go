package apierror

import (
	"net/http"
	"testing"

	"github.com/llmsandbox/llmsandbox"
)

// TestBegunNothing: no answer to what may have been begun asks for it to be sent again.
func TestBegunNothing(t *testing.T) {
	for _, test := range []struct {
		status int
		code   string
		want   bool
	}{
		{http.StatusTooManyRequests, "busy", true},
		{http.StatusTooManyRequests, "", true},
		{http.StatusServiceUnavailable, Stopping, true},
		{http.StatusServiceUnavailable, NotReady, true},
		{http.StatusServiceUnavailable, Unavailable, true},
		{http.StatusServiceUnavailable, "lost", false},
		{http.StatusServiceUnavailable, "", false},
		{http.StatusInternalServerError, Stopping, false},
		{http.StatusOK, "", false},
	} {
		if got := BegunNothing(test.status, test.code); got != test.want {
			t.Errorf("%d %q: got %t, want %t", test.status, test.code, got, test.want)
		}
	}
}

// TestKinds: every kind has a class, a status of an error and a code, and a code has one status.
func TestKinds(t *testing.T) {
	status := map[string]int{}
	for _, k := range Kinds {
		if k.Err == nil || k.Status < 400 || k.Code == "" {
			t.Errorf("got %+v, want all of it set", k)
		}
		if s, ok := status[k.Code]; ok && s != k.Status {
			t.Errorf("%s: got the statuses %d and %d, want one", k.Code, s, k.Status)
		}
		status[k.Code] = k.Status
	}
	if last := Kinds[len(Kinds)-1]; last.Err != llmsandbox.ErrLost {
		t.Errorf("got %v as the last, want ErrLost: what else is known of an error says more", last.Err)
	}
}
