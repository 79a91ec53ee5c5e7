package llmsandbox

import (
	"errors"
	"slices"
	"sync"
)

// maxProgramAlternatives bounds how often a run is planned again because a program
// was not there; no language has as many alternatives.
const maxProgramAlternatives = 8

// programs remembers which of a language's alternative programs (python3, python)
// the sandbox has. What is missing is learnt by trying, which costs nothing when
// the first one is there.
type programs struct {
	mu      sync.Mutex
	missing map[string]bool
	// last maps a rejected program to whether another one can take its place.
	alternatives map[string][]string
}

// choose returns the first of the alternatives not known to be missing, or the
// first of all when they all are.
func (p *programs) choose(alternatives ...string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(alternatives) == 0 {
		return ""
	}
	for _, name := range alternatives {
		if !p.missing[name] {
			p.remember(name, alternatives)
			return name
		}
	}
	return alternatives[0]
}

func (p *programs) remember(name string, alternatives []string) {
	if p.alternatives == nil {
		p.alternatives = map[string][]string{}
	}
	p.alternatives[name] = alternatives
}

// reject notes that a chosen program is missing and tells whether there is another
// to try.
func (p *programs) reject(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.missing == nil {
		p.missing = map[string]bool{}
	}
	p.missing[name] = true
	return slices.ContainsFunc(p.alternatives[name], func(other string) bool { return !p.missing[other] })
}

// tryPrograms calls attempt again as long as it fails because a program was not there
// that another one can take the place of.
func (s *Sandbox) tryPrograms(attempt func() error) error {
	for tried := 1; ; tried++ {
		var missing *missingProgramError
		err := attempt()
		if tried == maxProgramAlternatives || !errors.As(err, &missing) || !s.programs.reject(missing.program) {
			return err
		}
	}
}
