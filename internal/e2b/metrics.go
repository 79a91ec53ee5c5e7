package e2b

import (
	"context"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/service"
)

// maxMeasured bounds the sandboxes whose samples one request asks for.
const maxMeasured = 100

// A metric is a sample as SDKs have it. They know no figure that is not known: what a sandbox uses of its disk is 0, and so is what of its memory is a cache,
// which is in what it uses. A limit that is 0 is none.
type metric struct {
	At        time.Time `json:"timestamp"`
	Unix      int64     `json:"timestampUnix"`
	CPUs      int       `json:"cpuCount"`
	CPUUsed   float64   `json:"cpuUsedPct"` // of all of them
	Memory    int64     `json:"memUsed"`
	MemoryMax int64     `json:"memTotal"`
	Cache     int64     `json:"memCache"`
	Disk      int64     `json:"diskUsed"`
	DiskMax   int64     `json:"diskTotal"`
}

func metricOf(i *backend.Info, s service.Sample) metric {
	cpus := describeListed(i).CPUs
	return metric{
		At: s.At.UTC(), Unix: s.At.Unix(), CPUs: cpus, CPUUsed: math.Round(s.CPUs/float64(cpus)*1e4) / 100,
		Memory: s.Memory, MemoryMax: max(i.Limits.Memory, 0), DiskMax: max(i.Limits.Disk, 0),
	}
}

// metrics answers with what a sandbox has used, from start to end.
func (s *Server) metrics(ctx context.Context, _ http.ResponseWriter, r *request) (int, any, error) {
	q := r.URL.Query()
	start, err := secondsOf(q, "start", math.MinInt64)
	if err != nil {
		return 0, nil, err
	}
	end, err := secondsOf(q, "end", math.MaxInt64)
	switch {
	case err != nil:
		return 0, nil, err
	case start > end:
		return 0, nil, refusal(http.StatusBadRequest, "start: it is after end")
	}
	i, err := s.find(ctx, r)
	if err != nil {
		return 0, nil, err
	}
	samples, err := s.service.Samples(ctx, r.caller.Project, r.id)
	if err != nil {
		return 0, nil, err
	}
	all := []metric{}
	for _, sample := range samples {
		if m := metricOf(&i, sample); m.Unix >= start && m.Unix <= end {
			all = append(all, m)
		}
	}
	return http.StatusOK, all, nil
}

// secondsOf is a time of a query, in seconds since 1970.
func secondsOf(q url.Values, name string, otherwise int64) (int64, error) {
	text := q.Get(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, refusal(http.StatusBadRequest, name+": use a number of seconds since 1970")
	}
	return n, nil
}

// metricsOfMany answers with the last samples of sandboxes. Those that are not there, or have not been measured yet, are left out.
func (s *Server) metricsOfMany(ctx context.Context, _ http.ResponseWriter, r *request) (int, any, error) {
	wanted := map[string]bool{}
	for id := range strings.SplitSeq(strings.Join(r.URL.Query()["sandbox_ids"], ","), ",") {
		id, _, _ = strings.Cut(id, "-")
		wanted[innerID(id)] = true
	}
	delete(wanted, "") // it is no id
	if len(wanted) > maxMeasured {
		return 0, nil, refusal(http.StatusBadRequest, "sandbox_ids: name at most "+strconv.Itoa(maxMeasured))
	}
	last, err := s.service.LastSamples(r.caller.Project, slices.Collect(maps.Keys(wanted)))
	if err != nil {
		return 0, nil, err
	}
	infos, err := s.service.List(ctx, r.caller.Project)
	if err != nil {
		return 0, nil, err
	}
	all := map[string]metric{}
	for i := range infos {
		if sample, ok := last[infos[i].ID]; ok {
			all[outerID(infos[i].ID)] = metricOf(&infos[i], sample)
		}
	}
	return http.StatusOK, map[string]any{"sandboxes": all}, nil
}

// metricsNow answers a sandbox's own port with what it uses.
func (s *Server) metricsNow(w http.ResponseWriter, r *http.Request) {
	const mega = 1 << 20
	t := targetOf(r.Context())
	i, err := s.service.Find(r.Context(), t.project, t.id)
	var samples []service.Sample
	if err == nil {
		samples, err = s.service.Samples(r.Context(), t.project, t.id)
	}
	if err == nil && len(samples) == 0 {
		err = &Refusal{http.StatusServiceUnavailable, "what the sandbox uses is not known, or not yet: ask again", http.Header{"Retry-After": {"1"}}}
	}
	if err != nil {
		answer(w, s.refusalOf(r.Context(), err))
		return
	}
	m := metricOf(&i, samples[len(samples)-1])
	send(w, http.StatusOK, map[string]any{
		"ts": m.Unix, "cpu_count": m.CPUs, "cpu_used_pct": m.CPUUsed, "mem_used": m.Memory, "mem_total": m.MemoryMax, "mem_cache": m.Cache,
		"mem_used_mib": m.Memory / mega, "mem_total_mib": m.MemoryMax / mega, "disk_used": m.Disk, "disk_total": m.DiskMax,
	})
}
