package local

import (
	"testing"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
	"github.com/llmsandbox/llmsandbox/internal/agentproto"
)

// BenchmarkCreate measures until the agent has answered a first call, and how long a
// caller waits for Destroy.
func BenchmarkCreate(b *testing.B) {
	back := newBackend(b)
	var made, answered, gone time.Duration
	for i := 0; b.Loop(); i++ {
		start := time.Now()
		m, err := back.Create(b.Context(), backend.Spec{ID: newID(), Limits: backend.Limits{Memory: 512 << 20, CPUs: 1, PIDs: 128, Disk: 1 << 30}})
		if err != nil {
			b.Fatal(err)
		}
		t1 := time.Now()
		conn, err := connect(b.Context(), m)
		if err != nil {
			b.Fatal(err)
		}
		call, err := conn.Open(agentproto.MethodProcesses, &agentproto.Empty{})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := call.Recv(b.Context(), &agentproto.ProcessList{}); err != nil {
			b.Fatal(err)
		}
		t2 := time.Now()
		conn.Close()
		t3 := time.Now()
		if err := m.Close(nil); err != nil {
			b.Fatal(err)
		}
		if i == 0 {
			continue // it prepares the toolchains
		}
		made, answered, gone = made+t1.Sub(start), answered+t2.Sub(start), gone+time.Since(t3)
	}
	n := float64(max(b.N-1, 1))
	b.ReportMetric(made.Seconds()*1e3/n, "ms-create")
	b.ReportMetric(answered.Seconds()*1e3/n, "ms-answer")
	b.ReportMetric(gone.Seconds()*1e3/n, "ms-destroy")
}
