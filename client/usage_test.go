package client_test

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/llmsandbox/llmsandbox"
	"github.com/llmsandbox/llmsandbox/client"
	"github.com/llmsandbox/llmsandbox/httpapi"
	"github.com/llmsandbox/llmsandbox/httpapi/metering"
	"github.com/llmsandbox/llmsandbox/internal/service/store"
)

// TestProjectUsage: what a server keeps of a project comes as it is, and a quota that is reached ends at once, since the next day is far.
func TestProjectUsage(t *testing.T) {
	ctx := testContext(t)
	db, err := store.Open(ctx, filepath.Join(t.TempDir(), "usage.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	c := connect(t, serve(t, httpapi.Config{Usage: db, MaxDayCPU: time.Minute, MaxDaySent: 1 << 40}), key, client.Options{})
	who, err := authenticate(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().UTC()
	hour := now.Truncate(time.Hour)
	used := client.Amount{CPU: time.Minute + time.Millisecond, Sent: 1 << 33, Received: 2, Runs: 3, Lived: time.Hour}
	before := metering.Hour{Project: who.Project, Begins: hour.Add(-9 * time.Hour), Amount: metering.Amount{Runs: 1}}
	if err := db.AddUsage(ctx, []metering.Hour{before, {Project: who.Project, Begins: hour, Amount: metering.Amount(used)}, {Project: "another", Begins: hour, Amount: metering.Amount(used)}}, nil); err != nil {
		t.Fatal(err)
	}
	got, err := c.Usage(ctx, hour.Add(time.Nanosecond), hour.Add(time.Minute))
	want := client.ProjectUsage{From: hour, To: hour.Add(time.Hour), Hours: []client.HourUsage{{Hour: hour, Amount: used}}, Total: used}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v, want no error; -want +got\n%s", err, diff)
	}
	q, err := c.Quotas(ctx)
	if err != nil || q.CPU != (client.Quota{Used: 60_001, Most: 60_000}) || q.Sent != (client.Quota{Used: 1 << 33, Most: 1 << 40}) || !q.Tomorrow.Equal(hour.Truncate(24*time.Hour).Add(24*time.Hour)) {
		t.Errorf("%+v, %v, want what is used of today", q, err)
	}
	if u, err := c.Usage(ctx, time.Time{}, time.Time{}); err != nil || len(u.Hours) != 2 || u.Total.Runs != 4 {
		t.Errorf("of a day: %+v, %v, want both hours", u, err)
	}
	if _, err := c.Usage(ctx, now, now.Add(-24*time.Hour)); !errors.Is(err, llmsandbox.ErrInvalid) {
		t.Errorf("of a time that ends before it begins: %v, want ErrInvalid", err)
	}
	var refused *client.Error
	if _, err := c.Open(ctx, &llmsandbox.Options{Language: "bash"}); !errors.As(err, &refused) || refused.Code != "quota" {
		t.Errorf("%v, want that the quota is reached", err)
	}
	if _, err := use(t).Usage(ctx, time.Time{}, time.Time{}); !errors.Is(err, llmsandbox.ErrUnsupported) {
		t.Errorf("of a server that keeps none: %v, want ErrUnsupported", err)
	}
}
