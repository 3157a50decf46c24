package driver

import (
	"slices"

	"diagnose/agent"
	"diagnose/evidence"
	"diagnose/image"
)

// noteAllocator tells that Python took its objects from malloc, as it does under the agent
// (agent.Target.Environ) and nowhere else by default.
func (a *analysis) noteAllocator() {
	python := func(m *image.Module) bool { return agent.IsPythonFile(m.Path) }
	if a.heap == nil || !slices.ContainsFunc(a.process.Modules, python) {
		return
	}
	entries := environment(a.process)
	if i := slices.IndexFunc(entries, agent.MallocReplaces); i >= 0 {
		a.limit(evidence.Limit{Code: evidence.LimitAllocator, Names: []string{entries[i]}}.Worded())
	}
}

// environment is the environment of a process, as far as it can be read.
func environment(p *image.Process) (list []string) {
	const mostEntries, mostEntry, word = 4096, 4096, 8
	s, found := p.SymbolNamed("environ") // environ(7)
	if !found {
		return nil
	}
	at, err := image.Uint64(p, s.Addr)
	if err != nil {
		return nil
	}
	for i := range uint64(mostEntries) {
		entry, err := image.Uint64(p, evidence.Addr(at+i*word))
		if err != nil || entry == 0 {
			break
		}
		if text, whole, err := image.CString(p, evidence.Addr(entry), mostEntry); err == nil && whole {
			list = append(list, text)
		}
	}
	return list
}
