package image

import (
	"math"
	"time"

	"github.com/llmsandbox/llmsandbox/backend"
)

const (
	// reportEvery keeps a fast line from spending its time on reports.
	reportEvery = 50 * time.Millisecond
	// maxParts is how many layers are counted; an image has at most 127.
	maxParts = 1024
)

// A meter adds up the bytes of the layers that a pull reports. It is used by one
// goroutine.
type meter struct {
	name   string
	report func(backend.Progress)
	parts  map[string]part
	last   time.Time
}

type part struct{ current, total int64 }

func newMeter(name string, report func(backend.Progress)) *meter {
	m := &meter{name: name, report: report, parts: map[string]part{}}
	m.send()
	return m
}

// see takes in a message. The same bytes are reported again while they are unpacked:
// only the download counts.
func (m *meter) see(msg message) {
	p, known := m.parts[msg.ID]
	switch {
	case msg.ID == "":
		return
	case msg.Status == "Downloading" && msg.Progress.Total >= 0 && msg.Progress.Current >= 0:
		if !known && len(m.parts) == maxParts {
			return
		}
		p.total = msg.Progress.Total
		p.current = max(p.current, msg.Progress.Current) // a part that is tried again begins anew
	case known && (msg.Status == "Download complete" || msg.Status == "Pull complete"):
		p.current = max(p.current, p.total)
	default:
		return
	}
	m.parts[msg.ID] = p
	if time.Since(m.last) >= reportEvery {
		m.send()
	}
}

// send reports the sum. It is also called once after the last message.
func (m *meter) send() {
	m.last = time.Now()
	var sum part
	for _, p := range m.parts {
		sum.current = plus(sum.current, p.current)
		sum.total = plus(sum.total, max(p.total, p.current))
	}
	m.report(backend.Progress{Stage: "pull", Message: m.name, Current: sum.current, Total: sum.total})
}

// plus adds without overflow what is not negative.
func plus(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
