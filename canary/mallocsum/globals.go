package mallocsum

import (
	"cmp"
	"slices"

	"diagnose/evidence"
	"diagnose/image"
	"diagnose/image/debuginfo"
	"diagnose/image/value"
)

// Bounds of the variables with static storage that are looked up.
const (
	mostGlobals      = 1 << 14
	mostTypedWords   = 1 << 18
	mostLocalThreads = 1024
)

// globals are the variables with static storage, looked up once each.
type globals struct {
	process *image.Process
	known   map[evidence.Addr]*debuginfo.Variable // by the address of their symbol
}

func newGlobals(p *image.Process) *globals {
	return &globals{process: p, known: map[evidence.Addr]*debuginfo.Variable{}}
}

// at is the variable that covers an address, with its symbol; nil without a variable where debug information has none.
func (g *globals) at(addr evidence.Addr) (*debuginfo.Variable, image.Symbol, bool) {
	s, ok := g.process.SymbolAt(addr)
	if !ok || addr < s.Addr || s.Module == nil {
		return nil, s, false
	}
	if v, known := g.known[s.Addr]; known {
		return v, s, true
	}
	if len(g.known) >= mostGlobals {
		return nil, s, true
	}
	var found *debuginfo.Variable
	if info, err := s.Module.Debug(); err == nil && info != nil {
		if v, ok, err := info.GlobalAt(s.Module.LinkAddr(s.Addr), 0); err == nil && ok && v.Type != nil {
			found = &v
		}
	}
	g.known[s.Addr] = found
	return found, s, true
}

// word is the part of a variable that a word is: its path and its type; ok is false if they are not known.
func (g *globals) word(addr evidence.Addr) (name string, typ debuginfo.Type, ok bool) {
	v, s, ok := g.at(addr)
	if !ok {
		return "", nil, false
	}
	if v == nil {
		return s.Name, nil, true
	}
	path, leaf, ok := value.Path(v.Type, int64(addr-s.Addr), 8)
	if !ok {
		return v.Name, nil, true
	}
	return v.Name + path, leaf, true
}

// typeGlobals gives types to the objects that variables with static storage point to.
func (y *typing) typeGlobals(g *globals, held []pointer) {
	for i := range held {
		if i == mostTypedWords {
			break
		}
		if y.process.ModuleAt(held[i].at) == nil {
			continue
		}
		if _, leaf, ok := g.word(held[i].at); ok && leaf != nil && leaf.Kind() == debuginfo.KindPointer {
			y.pointed(y.layouts.of(leaf.Elem()), held[i].to)
		}
	}
	y.follow()
}

// typeThreadLocals does the same for thread-local variables that are pointers.
func (y *typing) typeThreadLocals(held []pointer) {
	held = slices.Clone(held)
	slices.SortFunc(held, func(a, b pointer) int { return cmp.Compare(a.at, b.at) })
	type place struct {
		module *image.Module
		offset uint64
	}
	types := map[place]*layout{}
	threads := y.process.Threads[:min(len(y.process.Threads), mostLocalThreads)]
	for _, m := range y.process.Modules {
		if m.Object == nil {
			continue
		}
		tls, ok := m.Object.TLS()
		if !ok {
			continue
		}
		info, err := m.Debug()
		if err != nil || info == nil {
			continue
		}
		for i := range threads {
			start, err := y.process.ThreadLocal(&threads[i], m)
			if err != nil {
				continue
			}
			from, _ := slices.BinarySearchFunc(held, start, func(p pointer, at evidence.Addr) int { return cmp.Compare(p.at, at) })
			for _, p := range held[from:] {
				off := uint64(p.at - start)
				if off >= tls.Memsz || len(types) >= mostGlobals {
					break
				}
				l, known := types[place{m, off}]
				if !known {
					if v, ok, err := info.ThreadLocalAt(off, 0); err == nil && ok && v.Type != nil && v.Type.Kind() == debuginfo.KindPointer {
						l = y.layouts.of(v.Type.Elem())
					}
					types[place{m, off}] = l
				}
				y.pointed(l, p.to)
			}
		}
	}
	y.follow()
}
