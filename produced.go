package llmsandbox

import (
	"fmt"
	"slices"
	"sync"

	"github.com/llmsandbox/llmsandbox/internal/collect"
)

// produced is what the runs of a sandbox have produced so far.
type produced struct {
	maxCount int
	maxBytes int64
	// seen are the files that are artifacts of a run already.
	seen collect.Seen

	mu        sync.Mutex
	artifacts []Artifact
	bytes     int64
	over      int
	dropped   []string
}

// maxDroppedKept bounds the sentences that are kept.
const maxDroppedKept = 64

// keepArtifacts sets what runs collect unless they say otherwise.
func (s *Sandbox) keepArtifacts(o ArtifactOptions) {
	s.artifacts = o
	s.produced.maxCount, s.produced.maxBytes = o.MaxCount, o.MaxBytes
}

func (p *produced) add(artifacts []Artifact, dropped []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range artifacts {
		size := int64(len(a.Data))
		for _, form := range a.Also {
			size += int64(len(form.Data))
		}
		if len(p.artifacts) >= p.maxCount || p.bytes+size > p.maxBytes {
			p.over++
			continue
		}
		p.bytes += size
		p.artifacts = append(p.artifacts, a)
	}
	p.dropped = append(p.dropped, dropped[:min(len(dropped), maxDroppedKept-len(p.dropped))]...)
}

func (p *produced) all() ([]Artifact, []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	dropped := slices.Clone(p.dropped)
	if p.over > 0 {
		dropped = append(dropped, fmt.Sprintf("%d artifacts were left out: a sandbox keeps at most %d of %d bytes together, until they are cleared", p.over, p.maxCount, p.maxBytes))
	}
	return slices.Clone(p.artifacts), dropped
}

func (p *produced) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.artifacts, p.bytes, p.over, p.dropped = nil, 0, 0, nil
}
