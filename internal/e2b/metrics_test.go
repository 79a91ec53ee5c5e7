package e2b

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox"
)

// TestMetrics: what a sandbox has used is there over time, to its project alone.
func TestMetrics(t *testing.T) {
	h := serve(t)
	made := h.make(`{"timeout": 100}`)
	path := "/sandboxes/" + made.ID + "/metrics"
	of := func(query string) (all []metric) {
		t.Helper()
		status, text, _ := h.ask(readKey, http.MethodGet, path+query, "")
		if err := json.Unmarshal([]byte(text), &all); status != http.StatusOK || err != nil || all == nil {
			t.Fatalf("%s: %d %s, %v", query, status, text, err)
		}
		return all
	}
	before := time.Now().Truncate(time.Second)
	of("") // CPU time is counted from here at the latest
	sb, err := h.service.Get(testContext(t), testProject, innerID(made.ID))
	if err != nil {
		t.Fatal(err)
	}
	const use = `n=0; while [ $n -lt 200000 ]; do n=$((n+1)); done`
	if res, err := sb.Shell(testContext(t), use, nil); err != nil || !res.OK() {
		t.Fatal(res, err)
	}
	all, used := of(""), 0.0
	for _, m := range all {
		if used += m.CPUUsed; m.CPUs < 1 || m.Memory <= 0 || m.MemoryMax != llmsandbox.DefaultLimits().Memory || m.DiskMax <= 0 || m.At.Unix() != m.Unix || m.At.Before(before) {
			t.Errorf("%+v, want CPUs, memory, limits and when", m)
		}
	}
	if used <= 0 {
		t.Errorf("%+v, want the CPU time that a program has used", all)
	}
	soon := time.Now().Add(time.Hour).Unix()
	for query, any := range map[string]bool{
		fmt.Sprintf("?start=%d&end=%d", before.Unix(), soon): true, fmt.Sprintf("?start=%d", before.Unix()): true, fmt.Sprintf("?end=%d", soon): true,
		fmt.Sprintf("?end=%d", before.Unix()-1): false, fmt.Sprintf("?start=%d", soon): false,
	} {
		if all := of(query); (len(all) > 0) != any {
			t.Errorf("%s: %v, want some: %v", query, all, any)
		}
	}
	for _, query := range []string{"?start=2&end=1", "?start=x", "?end=1e3"} {
		if status, text, _ := h.ask(testKey, http.MethodGet, path+query, ""); status != http.StatusBadRequest {
			t.Errorf("%s: %d %s, want 400", query, status, text)
		}
	}
	if status, text, _ := h.ask(otherKey, http.MethodGet, path, ""); status != http.StatusNotFound {
		t.Errorf("another project gets %d %s, want 404", status, text)
	}

	many := func(key, ids string) (got map[string]metric) {
		t.Helper()
		var in struct{ Sandboxes map[string]metric }
		status, text, _ := h.ask(key, http.MethodGet, "/sandboxes/metrics?sandbox_ids="+ids, "")
		if err := json.Unmarshal([]byte(text), &in); status != http.StatusOK || err != nil || in.Sandboxes == nil {
			t.Fatalf("%s: %d %s, %v", ids, status, text, err)
		}
		return in.Sandboxes
	}
	none := strings.Repeat("a", len(made.ID))
	if got := many(testKey, none+","+made.ID+",x/..,"); len(got) != 1 || got[made.ID].Memory <= 0 {
		t.Errorf("%+v, want the sandbox's last sample", got)
	}
	if got := many(otherKey, made.ID); len(got) != 0 {
		t.Errorf("another project gets %+v", got)
	}
	var ids []string
	for n := range maxMeasured + 1 {
		ids = append(ids, fmt.Sprintf("%0*d", len(made.ID), n))
	}
	if status, text, _ := h.ask(testKey, http.MethodGet, "/sandboxes/metrics?sandbox_ids="+strings.Join(ids, ","), ""); status != http.StatusBadRequest {
		t.Errorf("too many: %d %s, want 400", status, text)
	}
}

// TestMetricsOfSandbox: a sandbox's own port tells what it uses now, once that is known.
func TestMetricsOfSandbox(t *testing.T) {
	b := serve(t).open(llmsandbox.Options{})
	status, text := b.do("49983", http.MethodGet, "/metrics", "", "")
	if status != http.StatusServiceUnavailable && status != http.StatusOK {
		t.Errorf("at first: %d %s, want 503 or what it uses", status, text)
	}
	// From here on, there is something to count from.
	status, text = b.do("49983", http.MethodGet, "/metrics", "", "")
	var got map[string]float64
	if err := json.Unmarshal([]byte(text), &got); status != http.StatusOK || err != nil {
		t.Fatalf("%d %s, %v", status, text, err)
	}
	for _, name := range []string{"ts", "cpu_count", "mem_used", "mem_total", "mem_total_mib", "disk_total"} {
		if got[name] <= 0 {
			t.Errorf("%s is %g, want more than 0", name, got[name])
		}
	}
	for _, name := range []string{"cpu_used_pct", "mem_cache", "mem_used_mib", "disk_used"} {
		if n, ok := got[name]; !ok || n < 0 {
			t.Errorf("%s is %g and there: %v", name, n, ok)
		}
	}
}
