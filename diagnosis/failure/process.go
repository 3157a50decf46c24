package failure

import (
	"diagnose/evidence"
	"diagnose/image"
)

// target is the part of a process that this package needs; *image.Process is one.
type target interface {
	image.Memory
	MappingAt(evidence.Addr) *image.Mapping
	ModuleAt(evidence.Addr) *image.Module
	Place(evidence.Addr) evidence.Place
	SymbolAt(evidence.Addr) (image.Symbol, bool)
	SymbolNamed(string) (image.Symbol, bool)
	ThreadLocal(*image.Thread, *image.Module) (evidence.Addr, error)
}

// process is the dead or stopped process. It is not changed.
type process struct {
	target
	mappings []image.Mapping
	modules  []*image.Module
	// pid is the process's own number; 0 when it is not known.
	pid int
}

// distance returns how many bytes are between addr and the nearest mapping.
func (p *process) distance(addr evidence.Addr) uint64 {
	best := ^uint64(0)
	for i := range p.mappings {
		m := &p.mappings[i]
		switch {
		case m.Contains(addr):
			return 0
		case addr < m.Start:
			best = min(best, uint64(m.Start-addr))
		default:
			best = min(best, uint64(addr-m.End)+1)
		}
	}
	return best
}

// limitList collects what prevented a better judgement.
type limitList struct {
	list []evidence.Limit
}

func (l *limitList) limit(subject, text string) {
	l.list = append(l.list, evidence.Limit{Code: evidence.LimitClassification, Subject: subject, Reason: text}.Worded())
}

// threadNumbered returns the thread with a kernel thread id.
func threadNumbered(threads []image.Thread, tid uint64) *image.Thread {
	for i := range threads {
		if tid != 0 && uint64(threads[i].Ref.TID) == tid {
			return &threads[i]
		}
	}
	return nil
}
