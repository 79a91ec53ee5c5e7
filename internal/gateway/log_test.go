package llmsandbox

import (
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/egress"
	"github.com/llmsandbox/llmsandbox/internal/environ"
)

// TestAttemptRecord: a run gets the attempts that began during it, in that order, a bounded
// number of them.
func TestAttemptRecord(t *testing.T) {
	policy, err := egress.ParsePolicy("full", nil)
	if err != nil {
		t.Fatal(err)
	}
	proxy, err := egress.New(egress.Config{Policy: policy})
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close()
	var log networkLog
	told := 0
	log.setHook(func(NetworkAttempt) { told++ })
	before := time.Now().Add(-time.Second)
	r := log.begin()
	log.ended(NetworkAttempt{Time: before, Name: "before"})
	log.ended(NetworkAttempt{Time: r.since.Add(2), Name: "second"})
	log.ended(NetworkAttempt{Time: r.since.Add(1), Name: "first"})
	other := log.begin()
	for range maxAttempts + 5 {
		log.ended(NetworkAttempt{Time: time.Now(), Name: "more"})
	}
	attempts, dropped := r.end(proxy, settleTime)
	if len(attempts) != maxAttempts || dropped != 7 || attempts[0].Name != "first" || attempts[1].Name != "second" {
		t.Errorf("%d attempts and %d dropped, beginning with %+v", len(attempts), dropped, attempts[:2])
	}
	log.ended(NetworkAttempt{Time: time.Now(), Name: "after"})
	if len(r.attempts) != maxAttempts {
		t.Error("a record that has ended goes on")
	}
	if attempts, dropped := other.end(proxy, settleTime); len(attempts) != maxAttempts || dropped != 6 {
		t.Errorf("another run's: %d and %d dropped", len(attempts), dropped)
	}
	if len(log.runs) != 0 {
		t.Errorf("%d records are left", len(log.runs))
	}
	if told != maxAttempts+9 {
		t.Errorf("the hook was told of %d attempts", told)
	}
}

func TestAddMissing(t *testing.T) {
	got := environ.AddMissing([]string{"A=1", "HTTP_PROXY=mine"}, []string{"HTTP_PROXY=theirs", "B=2"})
	if len(got) != 3 || got[1] != "HTTP_PROXY=mine" || got[2] != "B=2" {
		t.Errorf("%q", got)
	}
	if got := without(got, []string{"B=2", "A=0"}); len(got) != 2 {
		t.Errorf("%q", got)
	}
}

// TestRelocated: what names the folder of the proxy's files names the sandbox's own.
func TestRelocated(t *testing.T) {
	env := []string{"A=" + gateDir + "/a:" + gateDir + "/b", "B=/tmp/other", "C"}
	dir := gateDirIn(backend.Guest{TempDir: "/scratch/.tmp"})
	got := relocated(env, dir)
	if dir != "/scratch/.tmp/.llmsandbox" || got[0] != "A="+dir+"/a:"+dir+"/b" || got[1] != "B=/tmp/other" || got[2] != "C" {
		t.Errorf("in %s: %q", dir, got)
	}
	if same := relocated(env, gateDirIn(backend.Guest{TempDir: "/tmp"})); same[0] != env[0] {
		t.Errorf("%q", same)
	}
}
