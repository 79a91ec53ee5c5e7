package ociimage

import (
	"sync"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
)

// reportEvery keeps a fast line from spending its time on reports.
const reportEvery = 50 * time.Millisecond

// A meter adds up what several layers fetch. A nil meter counts nothing.
type meter struct {
	mu      sync.Mutex
	report  func(backend.Progress)
	message string
	current int64
	total   int64
	last    time.Time
}

func newMeter(report func(backend.Progress), message string, layers []layer) *meter {
	if report == nil {
		return nil
	}
	m := &meter{report: report, message: message}
	for _, l := range layers {
		m.total += max(l.size, 0)
	}
	m.send()
	return m
}

func (m *meter) add(n int64) {
	if m == nil || n == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.current += n
	if m.current >= m.total || time.Since(m.last) >= reportEvery {
		m.send()
	}
}

func (m *meter) send() {
	m.last = time.Now()
	m.report(backend.Progress{Stage: "pull", Message: m.message, Current: m.current, Total: m.total})
}
