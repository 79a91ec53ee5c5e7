package gateway

import (
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/egress"
)

// TestRecord: a run gets the attempts that began during it, in that order, a bounded
// number of them.
func TestRecord(t *testing.T) {
	policy, err := egress.ParsePolicy("full", nil)
	if err != nil {
		t.Fatal(err)
	}
	proxy, err := egress.New(egress.Config{Policy: policy})
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close()
	var log Log
	hooked := 0
	log.SetHook(func(egress.Attempt) { hooked++ })
	before := time.Now().Add(-time.Second)
	r := log.begin(proxy)
	log.ended(egress.Attempt{Time: before, Name: "before"})
	log.ended(egress.Attempt{Time: r.since.Add(2), Name: "second"})
	log.ended(egress.Attempt{Time: r.since.Add(1), Name: "first"})
	other := log.begin(proxy)
	for range maxAttempts + 5 {
		log.ended(egress.Attempt{Time: time.Now(), Name: "more"})
	}
	attempts, dropped := r.End(SettleTime)
	if len(attempts) != maxAttempts || dropped != 7 || attempts[0].Name != "first" || attempts[1].Name != "second" {
		t.Errorf("%d attempts and %d dropped, beginning with %+v, want len(attempts) = %d, dropped = 7, Name = \"first\", Name = \"second\"", len(attempts), dropped, attempts[:2], maxAttempts)
	}
	log.ended(egress.Attempt{Time: time.Now(), Name: "after"})
	if len(r.attempts) != maxAttempts {
		t.Errorf("a record that has ended goes on: len(r.attempts) = %v, want %v", len(r.attempts), maxAttempts)
	}
	if attempts, dropped := other.End(SettleTime); len(attempts) != maxAttempts || dropped != 6 {
		t.Errorf("another run's: %d and %d dropped, want len(attempts) = %d, dropped = 6", len(attempts), dropped, maxAttempts)
	}
	if len(log.records) != 0 {
		t.Errorf("%d records are left, want 0", len(log.records))
	}
	if hooked != maxAttempts+9 {
		t.Errorf("the hook was called for %d attempts, want %d", hooked, maxAttempts+9)
	}
}

// TestEnvIn: what names the directory of the proxy's files names the sandbox's own.
func TestEnvIn(t *testing.T) {
	env := []string{"A=" + usualDir + "/a:" + usualDir + "/b", "B=/tmp/other", "C"}
	guest := backend.Guest{TempDir: "/scratch/.tmp"}
	dir, got := DirIn(guest), EnvIn(guest, env)
	if dir != "/scratch/.tmp/.llmsandbox" || got[0] != "A="+dir+"/a:"+dir+"/b" || got[1] != "B=/tmp/other" || got[2] != "C" {
		t.Errorf("in %s: %q, want dir = \"/scratch/.tmp/.llmsandbox\", got[0] = %q, got[1] = \"B=/tmp/other\", got[2] = \"C\"", dir, got, "A="+dir+"/a:"+dir+"/b")
	}
	if same := EnvIn(backend.Guest{TempDir: "/tmp"}, env); same[0] != env[0] {
		t.Errorf("%q, want same[0] = %v", same, env[0])
	}
}
