package image

import (
	"fmt"
	"path/filepath"
	"slices"

	"diagnose/evidence"
	"diagnose/image/object"
	"diagnose/internal/wording"
)

// limit records a limit of the analysis, once.
func (p *Process) limit(l evidence.Limit) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !evidence.HasLimit(p.found, &l) {
		p.found = append(p.found, l)
	}
}

// AllLimits returns Limits and those found since: by symbolizing, and in the
// parts of objects and debug information read so far.
func (p *Process) AllLimits() []evidence.Limit {
	p.mu.Lock()
	list := append(slices.Clone(p.Limits), p.found...)
	p.mu.Unlock()
	for _, m := range p.Modules {
		list = append(list, m.damage()...)
	}
	return list
}

// damage returns the parts of the module's object and of its opened debug
// information that could not be read.
func (m *Module) damage() []evidence.Limit {
	const most = 3
	var problems []error
	if m.Object != nil && m.Object.Damage() != nil {
		problems = append(problems, m.Object.Damage())
	}
	if info := m.file().opened.Load(); info != nil {
		problems = append(problems, info.Problems()...)
	}
	var list []evidence.Limit
	for i, err := range problems {
		text := err.Error()
		if format, ok := err.(*object.FormatError); ok && filepath.Base(format.File) == m.name() {
			text = format.InFile() // the subject names the file
		}
		text = wording.Name(text)
		if i == most {
			text = fmt.Sprintf("%d more parts could not be read", len(problems)-most)
		}
		list = append(list, evidence.Limit{Code: evidence.LimitDamagedFile, Subject: m.Path, Reason: text}.Worded())
		if i == most {
			break
		}
	}
	return list
}
