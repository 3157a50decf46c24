package driver

import (
	"encoding/binary"
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
	var b [word]byte
	pointer := func(at evidence.Addr) evidence.Addr {
		if n, err := p.ReadMemory(at, b[:]); err != nil || n != word {
			return 0
		}
		return evidence.Addr(binary.LittleEndian.Uint64(b[:]))
	}
	at := pointer(s.Addr)
	for i := range evidence.Addr(mostEntries) {
		entry := pointer(at + i*word)
		if at == 0 || entry == 0 {
			break
		}
		if text, whole, err := image.CString(p, entry, mostEntry); err == nil && whole {
			list = append(list, text)
		}
	}
	return list
}
