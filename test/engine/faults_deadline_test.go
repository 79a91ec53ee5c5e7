//go:build linux

package engine

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/volume"
	"github.com/moby/moby/client"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/backend/engine"
	"github.com/llmsandbox/llmsandbox/internal/testfaults"
)

// deadlineRecords are the volumes that tell of deadlines that were moved.
func deadlineRecords(t *testing.T, c *client.Client) []volume.Volume {
	t.Helper()
	res, err := c.VolumeList(testfaults.Context(t), client.VolumeListOptions{Filters: make(client.Filters).Add("label", "llmsandbox.role=deadline")})
	if err != nil {
		t.Fatal(err)
	}
	return res.Items
}

// A collection asks the agent of a container that has outlived its label: one whose deadline
// was moved stays, though its record was removed, and one whose agent hangs goes.
func TestFaultsDeadlineRecord(t *testing.T) {
	p := privateDocker(t)
	b, c := privateBackend(t, p, engine.Options{})
	testfaults.Works(t, openFaults(t, b)) // the first one brings the agent
	start := time.Now()
	testfaults.Works(t, openFaults(t, b))
	lifetime := 10*time.Second + 4*time.Since(start)
	open := func() *llmsandbox.Sandbox {
		sb, err := llmsandbox.Open(testfaults.Context(t), &llmsandbox.Options{Backend: b, Image: faultsImage, BestEffort: true, Lifetime: lifetime})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = sb.Close() })
		return sb
	}
	moved, hangs := open(), open()
	over := time.Now().Add(lifetime)
	for _, at := range []time.Time{time.Now().Add(2 * time.Hour), time.Now().Add(time.Hour)} {
		if err := moved.SetDeadline(testfaults.Context(t), at); err != nil {
			t.Fatal(err)
		}
	}
	records := deadlineRecords(t, c)
	if len(records) != 1 {
		t.Fatalf("records %+v, want the last one alone", records)
	}
	if _, err := c.VolumeRemove(testfaults.Context(t), records[0].Name, client.VolumeRemoveOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.ContainerKill(testfaults.Context(t), "llmsandbox-"+hangs.ID(), client.ContainerKillOptions{Signal: "STOP"}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Until(over) + time.Second)
	found, err := b.GC(testfaults.Context(t))
	if want := []backend.Leftover{{Kind: "container", Name: "llmsandbox-" + hangs.ID(), Removed: true}}; err != nil || !slices.Equal(found, want) {
		t.Errorf("a collection finds %+v, %v; want %+v", found, err, want)
	}
	testfaults.Works(t, moved)
}

// A record that its writer has left goes with the next collection after its container.
func TestFaultsDeadlineRecordLeft(t *testing.T) {
	p := privateDocker(t)
	b, c := privateBackend(t, p, engine.Options{})
	sb := openFaults(t, b)
	other, err := llmsandbox.Attach(testfaults.Context(t), sb.ID(), &llmsandbox.AttachOptions{Backend: b})
	if err != nil {
		t.Fatal(err)
	}
	if err := other.SetDeadline(testfaults.Context(t), time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	if found, err := b.GC(testfaults.Context(t)); err != nil || len(found) > 0 || len(deadlineRecords(t, c)) != 1 {
		t.Errorf("a collection takes %+v of a sandbox that lives, %v, and leaves %+v, want no error, no found, len(deadlineRecords(t, c)) = 1", found, err, deadlineRecords(t, c))
	}
	if err := sb.Destroy(testfaults.Context(t)); err != nil {
		t.Fatal(err)
	}
	wantNothing(t, b, c) // Destroy has looked for it

	sb = openFaults(t, b)
	if other, err = llmsandbox.Attach(testfaults.Context(t), sb.ID(), &llmsandbox.AttachOptions{Backend: b}); err != nil {
		t.Fatal(err)
	}
	if err := other.SetDeadline(testfaults.Context(t), time.Now().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	<-sb.Done()
	if err := sb.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := b.GC(testfaults.Context(t)); err != nil {
		t.Fatal(err)
	}
	wantNothing(t, b, c)
	if left := deadlineRecords(t, c); len(left) > 0 {
		t.Errorf("left: %+v, want none", left)
	}
}

// In an existing container the agent ends at a deadline that was moved, and all that it
// has started, and nothing else.
func TestFaultsExistingDeadline(t *testing.T) {
	p := privateDocker(t)
	_, c := privateBackend(t, p, engine.Options{})
	id := foreignContainer(t, c, container.Config{Image: faultsImage, Cmd: strings.Fields(own)}, container.HostConfig{}, false)
	b, _ := privateBackend(t, p, engine.Options{Container: id})
	sb, err := llmsandbox.Open(testfaults.Context(t), &llmsandbox.Options{Backend: b, BestEffort: true, Lifetime: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sb.Close() }) // its agent has ended
	_, ended := running(t, sb, 0)
	at := time.Now().Add(2 * time.Second)
	if err := sb.SetDeadline(testfaults.Context(t), at); err != nil {
		t.Fatal(err)
	}
	if got, set := sb.Deadline(); !set || got.UnixMilli() != at.UnixMilli() {
		t.Errorf("the deadline is %v, %v; want %v", got, set, at)
	}
	o := <-ended
	if early := time.Until(at.Truncate(time.Millisecond)); early > 0 {
		t.Errorf("it ended %v too early, want at most 0", early)
	}
	if o.Res == nil || o.Res.ExitCode != -1 || o.Res.Status != llmsandbox.StatusLost && o.Res.Status != llmsandbox.StatusKilled {
		t.Errorf("%+v, %v; want it lost or killed", o.Res, o.Err)
	}
	top, err := c.ContainerTop(testfaults.Context(t), id, client.ContainerTopOptions{})
	if err != nil || len(top.Processes) != 1 {
		t.Errorf("%+v, %v; want the container's own program alone", top.Processes, err)
	}
	if left := deadlineRecords(t, c); len(left) > 0 {
		t.Errorf("records of an existing container: %+v, want none", left)
	}
}
