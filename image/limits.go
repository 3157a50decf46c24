package image

import (
	"slices"

	"diagnose/evidence"
)

// limit records what stands in the way of the analysis, once.
func (p *Process) limit(l evidence.Limit) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Contains(p.found, l) {
		p.found = append(p.found, l)
	}
}

// AllLimits returns Limits and those found while symbolizing.
func (p *Process) AllLimits() []evidence.Limit {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append(slices.Clone(p.Limits), p.found...)
}
